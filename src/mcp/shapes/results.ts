// Results of servers as the official SDKs check them.

import { elementsOf, isObject, type JsonObject, membersOf, type Span, withMembers } from '#wire';
import { contentBlock, implementation, resourceContents, role, serverCapabilities } from './content.ts';
import { cacheMembers, completeType } from './lists.ts';
import {
  anything,
  boolean,
  integer,
  list,
  members,
  object,
  orElse,
  present,
  readable,
  repaired,
  type Shape,
  text,
} from './shape.ts';
import type { Era } from '../wire/revisions.ts';

type ClientForm = 'modern' | 'legacy' | 'bare';

/** The `_meta` of a legacy result. That of a modern one may have anything. */
const legacyMeta = members(
  {},
  {
    progressToken: (value, at) => typeof value === 'string' || integer(value, at),
    'io.modelcontextprotocol/related-task': members({ taskId: text }),
  },
);
const META: Readonly<Record<Era, Shape>> = { modern: object, legacy: legacyMeta };

/** Outputs of legacy tools are objects. Another one comes in the form of the wrapped schema, see definitions.ts. */
const wrapped: Shape = (value, at) =>
  value !== null && (isObject(value) || repaired(at, (written) => `{"result":${written}}`));

/**
 * The output of a tool. A null is an output in the modern revision alone: servers of older ones write it for none, and
 * so it is for clients that name no revision.
 */
function structuredContent(era: Era, client: ClientForm): Shape {
  if (era === 'legacy') return client === 'legacy' ? wrapped : present;
  return client === 'bare' ? present : anything;
}

const callResult = (era: Era, client: ClientForm): Shape =>
  members(
    { content: orElse(list(contentBlock), '[]'), ...(era === 'modern' ? completeType : {}) },
    { structuredContent: structuredContent(era, client), isError: boolean, _meta: META[era] },
  );

const promptMessage = members({ role, content: contentBlock });
const completionOf = members({ values: list(text) }, { total: integer, hasMore: boolean });
/** Clients take so many values. The rest of them is left out, and `hasMore` says so. */
const VALUES_MAX = 100;
const completion: Shape = (value, at) =>
  completionOf(value, at) &&
  (((value as JsonObject)['values'] as readonly unknown[]).length <= VALUES_MAX || repaired(at, firstValues));

function firstValues(written: string | null): string {
  const known = membersOf(written!);
  const textAt = ({ start, end }: Span) => written!.slice(start, end);
  const first = elementsOf(written!, known.get('values')!.start, VALUES_MAX).map(textAt);
  const total = known.get('total');
  const change = {
    values: `[${first.join()}]`,
    hasMore: 'true',
    ...(total !== undefined && textAt(total) === 'null' ? { total: null } : {}),
  };
  return withMembers(written!, { start: 0, end: written!.length }, change, known).text;
}

const OTHERS: Readonly<Record<string, readonly [required: Readonly<Record<string, Shape>>, cacheable: boolean]>> = {
  'resources/read': [{ contents: list(resourceContents) }, true],
  'prompts/get': [{ messages: list(promptMessage) }, false],
  'completion/complete': [{ completion }, false],
};

function shapesOf(era: Era, client: ClientForm): ReadonlyMap<string, Shape> {
  const others = Object.entries(OTHERS).map(([method, [required, cacheable]]) => {
    const ofEra = era === 'modern' ? { ...completeType, ...(cacheable ? cacheMembers : {}) } : {};
    return [method, members({ ...required, ...ofEra }, { description: text, _meta: META[era] })] as const;
  });
  return new Map([['tools/call', callResult(era, client)], ...others]);
}

const CLIENTS = ['modern', 'legacy', 'bare'] as const;
const ofEra = (era: Era) =>
  Object.fromEntries(CLIENTS.map((client) => [client, shapesOf(era, client)])) as Record<
    ClientForm,
    ReadonlyMap<string, Shape>
  >;
const RESULTS: Readonly<Record<Era, Readonly<Record<ClientForm, ReadonlyMap<string, Shape>>>>> = {
  modern: ofEra('modern'),
  legacy: ofEra('legacy'),
};

/**
 * The shape of a result that a server of this era gives to a request. Null for one that is not checked: a result that
 * asks for input or is a task has members of its own, and other methods have no members that clients read.
 */
export function resultShape(method: string, era: Era, client: ClientForm, result: JsonObject): Shape | null {
  const { resultType, task } = result;
  if (era === 'modern' && resultType !== undefined && resultType !== null && resultType !== 'complete') return null;
  if (isObject(task) && result['content'] === undefined) return null;
  return RESULTS[era][client].get(method) ?? null;
}

/** The result of a task of a modern server. */
export const taskResult: Shape = members(
  { content: orElse(list(contentBlock), '[]') },
  { structuredContent: anything, isError: boolean, _meta: object },
);

const facts = members(
  { capabilities: orElse(serverCapabilities, '{}') },
  { serverInfo: implementation, instructions: text, _meta: object },
);

/**
 * The facts that a server tells of itself (its answer to `initialize` or `server/discover`, JSON text), without the
 * nulls of optional members. The same text if it is readable, or cannot be: then its clients tell.
 */
export function readableFacts(written: string, value: JsonObject): string {
  const read = readable(written, value, facts);
  return 'text' in read ? read.text : written;
}
