// The names that each module uses and neither declares nor imports: node --expose-internals free.js FOLDER module ...
// Names are resolved as the language does it, on the syntax tree of the parser that Node carries.

const { readFileSync } = require("fs");
const { parse } = require("internal/deps/acorn/acorn/dist/acorn");

function bound(pattern, names) {
  if (!pattern) return names;
  if (pattern.type === "Identifier") names.add(pattern.name);
  if (pattern.type === "ObjectPattern") pattern.properties.forEach((one) => bound(one.value ?? one.argument, names));
  if (pattern.type === "ArrayPattern") pattern.elements.forEach((one) => bound(one, names));
  if (pattern.type === "AssignmentPattern") bound(pattern.left, names);
  if (pattern.type === "RestElement") bound(pattern.argument, names);
  return names;
}

// What a statement declares in the block that it stands in.
function declared(statement, names) {
  if (statement?.type === "VariableDeclaration") statement.declarations.forEach((one) => bound(one.id, names));
  if (statement?.type === "FunctionDeclaration" || statement?.type === "ClassDeclaration") bound(statement.id, names);
  if (statement?.type === "ImportDeclaration") statement.specifiers.forEach((one) => bound(one.local, names));
  if (statement?.type?.startsWith("Export")) declared(statement.declaration, names);
  return names;
}

// What a node declares for all that stands inside it.
function scope(node) {
  const names = new Set();
  if (Array.isArray(node.body)) node.body.forEach((one) => declared(one, names));
  if (node.type === "SwitchStatement") node.cases.forEach((one) => one.consequent.forEach((line) => declared(line, names)));
  for (const part of [node.init, node.left]) declared(part, names);
  if (/Function|^Class/.test(node.type)) bound(node.id, names);
  if (node.params) node.params.forEach((one) => bound(one, names));
  if (node.type === "CatchClause") bound(node.param, names);
  if (/Function/.test(node.type)) names.add("arguments");
  return names;
}

// Of a node the parts that are code, not names of members.
function parts(node) {
  if (/^(Import|ExportSpecifier|MetaProperty|Break|Continue)/.test(node.type) && node.type !== "ImportExpression") return [];
  if (node.type === "LabeledStatement") return [node.body];
  const named = { MemberExpression: "property", Property: "key", MethodDefinition: "key", PropertyDefinition: "key" }[node.type];
  return Object.entries(node)
    .filter(([name]) => name !== named || node.computed)
    .flatMap(([, part]) => part)
    .filter((part) => part && typeof part.type === "string");
}

function free(node, scopes, found) {
  if (node.type === "Identifier") return scopes.some((names) => names.has(node.name)) ? found : found.add(node.name);
  const inner = [...scopes, scope(node)];
  parts(node).forEach((part) => free(part, inner, found));
  return found;
}

const [folder, ...modules] = process.argv.slice(2);
const names = (module) => {
  const tree = parse(readFileSync(`${folder}/${module}.js`, "utf-8"), { ecmaVersion: "latest", sourceType: "module" });
  return [...free(tree, [], new Set())].sort();
};
console.log(JSON.stringify(Object.fromEntries(modules.map((module) => [module, names(module)]))));
