import { parseSync } from '@swc/core';

const operators = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&&': '||',
  '||': '&&',
  '??': '&&',
};

/** Calls of these do nothing that a promise of the library is about. */
const removable = new Set(['CallExpression', 'AssignmentExpression', 'UpdateExpression', 'AwaitExpression']);

/** All changes of a TypeScript source, as replacements of text. */
export function mutationsOfTypeScript(source) {
  // Spans count bytes, and go on from what was parsed before: a first statement of our own says where they start.
  const bytes = Buffer.from(`;${source}`);
  const { body } = parseSync(bytes.toString(), { syntax: 'typescript', decorators: true, target: 'es2022' });
  const start = body[0].span.start;
  const offset = (at) => bytes.subarray(0, at - start).toString().length - 1;
  const found = [];
  const visit = (node) => {
    if (node === null || typeof node !== 'object' || node.type?.startsWith('Ts')) return;
    const changes = Array.isArray(node) ? [] : changesOf(node, source, offset);
    for (const [span, becomes] of changes) found.push({ from: offset(span.start), to: offset(span.end), becomes });
    for (const value of Object.values(node)) visit(value);
  };
  visit(body.slice(1));
  return found;
}

/** What becomes of one node: pairs of a span and its new text. */
function changesOf(node, source, offset) {
  if (node.type === 'BinaryExpression' && operators[node.operator] !== undefined) {
    // Where it is the whole condition, that this is true or false says the same.
    if (node.isCondition && /^[!=]==$/.test(node.operator)) return [];
    const { end } = node.left.span;
    const between = source.slice(offset(end), offset(node.right.span.start));
    return [
      [{ start: end, end: node.right.span.start }, between.replace(node.operator, () => operators[node.operator])],
    ];
  }
  if (node.type === 'UnaryExpression' && node.operator === '!') {
    return [[{ start: node.span.start, end: node.argument.span.start }, '']];
  }
  if (node.type === 'BooleanLiteral') return [[node.span, String(!node.value)]];
  if (node.type === 'IfStatement' || node.type === 'ConditionalExpression') {
    node.test.isCondition = true;
    return [
      [node.test.span, 'true'],
      [node.test.span, 'false'],
    ];
  }
  if (node.type === 'ExpressionStatement' && removable.has(node.expression.type)) return [[node.span, ';']];
  if (node.type === 'ReturnStatement' && !node.argument) return [[node.span, ';']];
  return [];
}
