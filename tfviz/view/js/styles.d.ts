// esbuild makes style sheets texts.
declare module "*.css" {
  const text: string;
  export default text;
}

// Bundles by their keys, as `tfviz/view/page/bundle.py` registers them.
declare var tfvizBundles: Record<string, () => any>;
