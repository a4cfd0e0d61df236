"""The page's matrix products, in WebAssembly and in JavaScript, match torch."""

import base64
import itertools

import numpy
import pytest
import torch

from tfviz.view.page.bundle import bundle

pytest_plugins = ["browser", "node"]

SIZES = (0, 1, 3, 5, 7, 9, 17, 129)
KERNELS = ("WebAssembly", "JavaScript")
HELPERS = """
const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
const text = (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    let letters = "";
    for (const byte of bytes) letters += String.fromCharCode(byte);
    return btoa(letters); };
async function made(kernel) {
    const { WebAssembly } = globalThis;
    if (kernel === "JavaScript") globalThis.WebAssembly = undefined;
    globalThis.products = await MatmulKernel.make();
    globalThis.WebAssembly = WebAssembly;
    return products.kernel.name; }
const buffer = () => products.kernel.memory(0).buffer;
"""
MANY = """cases => { const outs = [];
    for (const [kind, batch, rows, inner, columns, a, b, bias] of cases) {
        const out = new Float32Array(batch * rows * columns).fill(7), added = bias === null ? null : floats(bias);
        const sizes = { batch, rows, inner, columns };
        if (kind === "matmul") products.matmul(floats(a), floats(b), sizes, out, added);
        else products.linear(floats(a), rows, products.store(floats(b), columns, inner), out, added);
        outs.push(text(out)); }
    return outs; }"""


def encode_tensor(tensor):
    return tensor if tensor is None else base64.b64encode(tensor.contiguous().numpy().tobytes()).decode()


def products(page, cases):
    """What the page says of (kind, a, b, bias), all of at least three axes."""
    told = [
        [
            kind,
            *a.shape,
            b.shape[2],
            encode_tensor(a),
            encode_tensor(b.mT if kind == "linear" else b),
            encode_tensor(bias),
        ]
        for kind, a, b, bias in cases
    ]
    shapes = [(len(a), a.shape[1], b.shape[2]) for _, a, b, _ in cases]
    outs = [numpy.frombuffer(base64.b64decode(text), dtype=numpy.float32) for text in page.evaluate(MANY, told)]
    return [torch.tensor(out).view(shape) for out, shape in zip(outs, shapes, strict=True)]


def small_integers(draw, *shape):
    """Whole numbers so small that no order of adding them rounds."""
    return torch.randint(-9, 10, shape, generator=draw).float()


@pytest.fixture(params=KERNELS)
def engine(request, fresh_node):
    """Node with `products`."""
    fresh_node.load("engine/products")
    fresh_node.run(HELPERS)
    assert fresh_node.evaluate("kernel => made(kernel)", request.param) == request.param
    return fresh_node


def test_products_of_all_sizes_match_torch_exactly(engine):
    draw, cases = torch.Generator().manual_seed(1), []
    sizes = list(itertools.product(SIZES, repeat=3))
    for which in torch.randperm(len(sizes), generator=draw).tolist():
        rows, inner, columns = sizes[which]
        a, b, bias = (
            small_integers(draw, 1, rows, inner),
            small_integers(draw, 1, inner, columns),
            small_integers(draw, columns),
        )
        cases += [(kind, a, b, bias if (which + i) % 2 else None) for i, kind in enumerate(("matmul", "linear"))]
    for (_, a, b, bias), out in zip(cases, products(engine, cases), strict=True):
        assert torch.equal(out, a @ b if bias is None else a @ b + bias), (a.shape, b.shape)


def test_batched_products_match_torch(engine):
    draw = torch.Generator().manual_seed(2)
    sizes = [(3, 5, 7, 9), (2, 1, 4, 3), (4, 6, 3, 8), (1, 9, 2, 17), (0, 2, 3, 4), (2, 0, 3, 4), (5, 3, 0, 2)]
    cases = [
        ("matmul", small_integers(draw, n, r, i), small_integers(draw, n, i, c), small_integers(draw, c))
        for n, r, i, c in sizes
    ]
    for (_, a, b, bias), out in zip(cases, products(engine, cases), strict=True):
        assert torch.equal(out, a @ b + bias)


def test_random_products_match_torch(engine):
    draw = torch.Generator().manual_seed(3)
    a, b, bias = (torch.randn(shape, generator=draw) for shape in [(1, 23, 300), (1, 300, 45), (45,)])
    expected = a.double() @ b.double() + bias
    for out in products(engine, [("matmul", a, b, bias), ("linear", a, b, bias)]):
        torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-4)


def test_nan_and_inf_propagate_like_torch(engine):
    draw = torch.Generator().manual_seed(4)
    a, b, bias = small_integers(draw, 1, 6, 5), small_integers(draw, 1, 5, 11), small_integers(draw, 11)
    a[0, 1, 2], a[0, 4, 0] = torch.nan, torch.inf
    b[0, 3, 8], b[0, 0, 2], bias[10] = -torch.inf, 0, torch.nan
    a[0, 3, 3] = 0  # 0 times infinity is no number
    expected = a @ b + bias
    assert expected[0, 1].isnan().all()
    assert expected[0, 3, 8].isnan()
    assert expected.isfinite().sum() == 4 * 9
    for out in products(engine, [("matmul", a, b, bias), ("linear", a, b, bias)]):
        torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


def test_stored_matrix_survives_memory_growth_and_source_changes(engine):
    found = engine.evaluate("""() => {
        const weight = Float32Array.of(1, 4, 2, 5, 3, 6), out = new Float32Array(3), before = buffer();
        const stored = products.store(weight, 3, 2);
        weight.fill(0);
        const large = products.store(new Float32Array(400 * 300).fill(1), 400, 300);
        const sums = new Float32Array(2 * 400);
        products.linear(new Float32Array(2 * 300).fill(2), 2, large, sums);
        products.linear(Float32Array.of(10, 1), 1, stored, out);
        return [before === buffer(), [...out], [...new Set(sums)]]; }""")
    assert found == [False, [14, 25, 36], [600]]


def test_results_at_memory_boundary_match_bias(engine):
    """A bias and two rows of it: around 5461 columns they just fill the first 64 KiB."""
    found = engine.evaluate("""() => {
        const none = new Float32Array(0), wrong = [];
        for (let columns = 5440; columns < 5480; columns++) {
            const bias = Float32Array.from({ length: columns }, (_, i) => i), out = new Float32Array(2 * columns);
            products.matmul(none, none, { rows: 2, inner: 0, columns }, out, bias);
            if (out.some((value, i) => value !== i % columns)) wrong.push(columns); }
        return wrong; }""")
    assert found == []


def test_output_may_alias_a_factor(engine):
    found = engine.evaluate("""() => {
        const a = Float32Array.of(1, 2, 3, 4), b = Float32Array.of(0, 1, 1, 0);
        const sizes = { rows: 2, inner: 2, columns: 2 };
        products.matmul(a, b, sizes, a);
        products.matmul(a, b, sizes, b, Float32Array.of(10, 20));
        return [[...a], [...b]]; }""")
    assert found == [[2, 1, 4, 3], [11, 22, 13, 24]]


def test_repeated_calls_do_not_grow_memory(engine):
    found = engine.evaluate("""() => {
        const matrix = new Float32Array(90 * 70), a = new Float32Array(5 * 90), out = new Float32Array(5 * 70);
        const use = () => {
            const stored = products.store(matrix, 70, 90);
            for (let i = 0; i < 30; i++) {
                products.linear(a, 5, stored, out);
                products.matmul(a, matrix, { rows: 5, inner: 90, columns: 70 }, out); } };
        use();
        const before = buffer();
        for (let i = 0; i < 30; i++) { products.free(); use(); }
        return before === buffer(); }""")
    assert found


def test_stored_matrix_is_invalid_after_free_or_elsewhere(engine):
    says = """async () => {
        const stored = products.store(new Float32Array(6), 3, 2), others = await MatmulKernel.make();
        const tried = (some) => { try { some.linear(new Float32Array(2), 1, stored, new Float32Array(3)); }
            catch (error) { return error.message; } };
        const first = [tried(products), tried(others)];
        products.free();
        return [...first, tried(products)]; }"""
    wrong = "this weight is not stored here: it was freed, or belongs to other products"
    assert engine.evaluate(says) == [None, wrong, wrong]


WRONG = {
    "matmul(of(7), of(6), sizes, of(12))": "a holds 7 numbers; it must hold 8",
    "matmul(of(8), of(7), sizes, of(12))": "b holds 7 numbers; it must hold 6",
    "matmul(of(8), of(6), sizes, of(13))": "out holds 13 numbers; it must hold 12",
    "matmul(of(8), of(6), sizes, of(12), of(4))": "the bias holds 4 numbers; it must hold 3",
    "matmul(of(8), of(6), sizes, null)": "out holds no numbers; it must hold 12",
    "matmul(of(8), of(6), { ...sizes, rows: -4 }, of(12))": "rows is -4; it must be 0, 1, 2, ...",
    "matmul(of(8), of(6), { ...sizes, inner: 1.5 }, of(24))": "inner is 1.5; it must be 0, 1, 2, ...",
    "matmul(of(8), of(6), { ...sizes, batch: 2, inner: 1 }, of(12))": "out holds 12 numbers; it must hold 24",
    "store(of(5), 3, 2)": "the weight holds 5 numbers; it must hold 6",
    "store(of(6), NaN, 2)": "columns is NaN; it must be 0, 1, 2, ...",
    "linear(of(3), 2, stored, of(6))": "a holds 3 numbers; it must hold 4",
    "linear(of(4), 2, stored, of(4))": "out holds 4 numbers; it must hold 6",
    "linear(of(4), 2, stored, of(6), of(2))": "the bias holds 2 numbers; it must hold 3",
    "matmul([], [], { rows: 1, inner: 0, columns: 1e12 }, { length: 1e12 })": "no memory for 8000001 MB of matrices",
}


def test_invalid_calls_raise_and_keep_stored_matrix(engine):
    found = engine.evaluate(
        """calls => calls.map((call) => {
            const of = (count) => new Float32Array(count), out = of(3);
            const stored = products.store(Float32Array.of(1, 4, 2, 5, 3, 6), 3, 2);
            let said = null;
            const names = { of, stored, sizes: { rows: 4, inner: 2, columns: 3 } };
            try { new Function(...Object.keys(names), `products.${call}`)(...Object.values(names)); }
            catch (error) { said = error.message; }
            products.linear(Float32Array.of(10, 1), 1, stored, out);
            return [said, [...out]]; })""",
        list(WRONG),
    )
    assert found == [[says, [14, 25, 36]] for says in WRONG.values()]


@pytest.mark.parametrize(
    "lacks",
    [
        "<!doctype html><script>WebAssembly.instantiate = () => Promise.reject(new TypeError('no SIMD'))</script>",
        "<!doctype html><meta http-equiv='Content-Security-Policy' content=\"script-src 'unsafe-inline'\">",
    ],
)
def test_javascript_kernel_is_used_without_webassembly(new_page, lacks):
    (key, script), page = bundle("engine"), new_page()
    page.set_content(lacks + script + f"<script>const {{ MatmulKernel }} = tfvizBundles['{key}']();{HELPERS}</script>")
    assert page.evaluate("kernel => made(kernel)", "WebAssembly") == "JavaScript"
    a, b = torch.tensor([[[1.0, 2]]]), torch.tensor([[[3.0, 4, 5], [6, 7, 8]]])
    assert products(page, [("matmul", a, b, None)])[0].tolist() == [[[15, 18, 21]]]
