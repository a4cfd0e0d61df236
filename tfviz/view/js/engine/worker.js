// The engine behind a line of messages: in a worker, or in the page itself where a worker is refused.
import { Machine } from "./machine.js";
import { Products } from "./products.js";

// Answer what `port` asks: { id, load: programs, bytes } or { id, run: name, inputs, options }.
export function serve(port) {
  const machine = Products.make().then((products) => new Machine(products));
  port.onmessage = async ({ data }) => {
    try {
      const engine = await machine;
      if (data.load) port.postMessage({ id: data.id, result: engine.load(data.load, data.bytes) ?? null });
      else answer(port, data.id, engine.run(data.run, data.inputs, data.options));
    } catch (error) {
      port.postMessage({ id: data.id, error: String(error.message ?? error) });
    }
  };
}

// The arrays go over as they are, uncopied.
function answer(port, id, result) {
  const tensors = [...Object.values(result.outputs), ...Object.values(result.patterns).flat()];
  const arrays = tensors.flatMap(({ data, open }) => (open ? [data.buffer, open.buffer] : [data.buffer]));
  port.postMessage({ id, result }, arrays);
}
