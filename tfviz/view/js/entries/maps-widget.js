// The entry point for views of heads in a widget, whose kernel sends the maps that the page does not contain.

import { HeadSource } from "../base/head-source.js";
import { inflated } from "../base/page-data.js";
import { TraitStore, widget } from "../base/widget.js";
import { HeadsView } from "../views/heads-view.js";

export default widget((host, model, kernel) => {
  const viewDocument = model.get("document");
  const { buffer, byteOffset, byteLength } = model.get("data");
  const source = new HeadSource(
    viewDocument,
    new Uint8Array(buffer, byteOffset, byteLength),
    async (part, layer, head, where) => {
      const { poolSize, ...range } = where;
      const { buffers: pieces } = await kernel.ask({ part, layer, head, ...range, pool_size: poolSize });
      return inflated(pieces[0]);
    },
  );
  const store = new TraitStore(model, Object.keys(viewDocument.state));
  return new HeadsView(host, source, store, { page: () => kernel.page() });
});
