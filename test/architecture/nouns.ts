import { parseAst } from 'rolldown/parseAst';
import { lineOf, type Finding, type SourceFile } from './source.ts';

/** Participles, prepositions and verbs of a private dialect: they do not tell what a variable holds. */
const NOT_NOUNS: ReadonlySet<string> = new Set(
  'asked told said given meant shown opened of by look looks taken kept left wanted named found made heard'.split(' '),
);

/** Names that another place decides: a column, an option, a member of JSON. By their files, with the reason. */
export const NAMED_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'columns of the database': [
    'src/billing/chains/deposit-rows.ts looks',
    'src/billing/chains/follow-up.ts looks',
    'src/billing/chains/withdrawal-rows.ts looks',
  ],
  'members of messages between gateways, of the API and of its clients': [
    'src/console/pages/account/end-call-route.ts by',
    'src/gateway/network/end-call.ts by',
    'src/program/cli/admin/account-records.ts by',
    'src/program/cli/terminal.ts said',
    'src/providers/proxy/probe/router.ts said',
  ],
  'options of the command line': ['src/program/cli/admin/treasury.ts by'],
};

const DECLARED = new Map([
  ['VariableDeclarator', 'id'],
  ['FunctionDeclaration', 'id'],
  ['TSPropertySignature', 'key'],
  ['TSMethodSignature', 'key'],
  ['PropertyDefinition', 'key'],
  ['MethodDefinition', 'key'],
]);

interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly name?: string;
  readonly [member: string]: unknown;
}
const isSyntax = (value: unknown): value is Syntax =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
const inside = (node: Syntax): readonly unknown[] => Object.values(node).flat();

/** The names that a variable or parameter declares: one, or those of its pattern. */
function* namesIn(pattern: unknown): Generator<Syntax> {
  if (!isSyntax(pattern)) return;
  if (pattern.type === 'Identifier' || pattern.type === 'PrivateIdentifier') yield pattern;
  else if (pattern.type === 'AssignmentPattern') yield* namesIn(pattern['left']);
  else if (pattern.type === 'Property') yield* namesIn(pattern['value']);
  else if (pattern.type.endsWith('Pattern') || pattern.type === 'RestElement')
    for (const one of inside({ ...pattern, typeAnnotation: null })) yield* namesIn(one);
}

function* declarations(node: unknown): Generator<Syntax> {
  if (!isSyntax(node)) return;
  const member = DECLARED.get(node.type);
  if (member !== undefined) yield* namesIn(node[member]);
  for (const param of Array.isArray(node['params']) ? (node['params'] as unknown[]) : []) yield* namesIn(param);
  for (const one of inside(node)) yield* declarations(one);
}

/** Declarations of NOT_NOUNS, but for those of NAMED_ELSEWHERE. */
export function dialectNames({ path, text }: SourceFile): Finding[] {
  const known = Object.values(NAMED_ELSEWHERE).flat();
  return [...declarations(parseAst(text, { lang: 'ts' }))]
    .filter(({ name }) => NOT_NOUNS.has(name!) && !known.includes(`${path} ${name}`))
    .map(({ name, start }) => `${path}:${lineOf(text, start)} declares ${name}: name it by the noun that it is`);
}
