# The lessons in JupyterLab, on the processor:
#   docker build -t tfviz . && docker run --rm -p 127.0.0.1:8888:8888 tfviz
# It prints an address with a token. Add -v "$PWD/runs:/home/reader/tfviz/runs" to keep what `tfviz run` writes.
FROM python:3.12-slim-bookworm

RUN useradd --create-home --uid 1000 reader
WORKDIR /home/reader/tfviz

# PyTorch without CUDA, in a layer that is made anew only when the versions change.
COPY constraints.txt ./
RUN python -m pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt torch

COPY --chown=reader:reader pyproject.toml hatch_build.py README.md LICENSE THIRD_PARTY_LICENSES.txt ./
COPY --chown=reader:reader tfviz ./tfviz
COPY --chown=reader:reader notebooks ./notebooks
RUN python -m pip install --no-cache-dir -c constraints.txt -e '.[lessons]' && chown reader:reader .

USER reader
EXPOSE 8888
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8888/api', timeout=4)"]
CMD ["tfviz", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser"]
