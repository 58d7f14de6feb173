import type { FastifyInstance } from 'fastify';
import { routesOf } from './route-table.ts';

/** A place of a request that may hold an id: `POST /api/v1/video/cancel, task_id in the body`. */
export interface IdPlace {
  readonly method: string;
  /** As in the route table: `/api/v1/videos/:id`. */
  readonly path: string;
  readonly where: 'path' | 'query' | 'header' | 'body';
  /** With dots for a member of a member. */
  readonly name: string;
}

export const placeName = ({ method, path, where, name }: IdPlace): string => `${method} ${path} ${where} ${name}`;

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: 'path' | 'query' | 'header' }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> };
}

/** Whether a name may be the name of an id. */
export const isLikeAnId = (name: string): boolean => LIKE_AN_ID.test(name);

const LIKE_AN_ID = /(?:^|[._-])(?:\w*[_-])?(?:ids?|hash|key|session|task|cursor|before|after|account|token|state)$/i;

/** Members of members are read down to this depth. */
const DEPTH_MAX = 4;

/**
 * All places for ids: the parameters of every path that the server routes, and what /openapi.json describes in queries,
 * headers and bodies with a name that may be the name of an id.
 */
export function idPlacesOf(server: FastifyInstance, document: OpenApi): readonly IdPlace[] {
  const places = new Map<string, IdPlace>();
  const add = (place: IdPlace) => void places.set(placeName(place), place);
  for (const { method, path } of routesOf(server)) {
    if (method === 'HEAD' || method === 'OPTIONS') continue;
    for (const [, name] of path.matchAll(/\/:(\w+)/g)) add({ method, path, where: 'path', name: name! });
    if (path.includes('*')) add({ method, path, where: 'path', name: '*' });
  }
  for (const [path, operations] of Object.entries(document.paths))
    for (const [verb, { parameters, requestBody }] of Object.entries(operations)) {
      const route = { method: verb.toUpperCase(), path: path.replaceAll(/\/\{(\w+)\}(?!:)/g, '/:$1') };
      for (const { name, in: where } of parameters)
        if (where !== 'path' && isLikeAnId(name)) add({ ...route, where, name: name.toLowerCase() });
      for (const { schema } of Object.values(requestBody?.content ?? {}))
        for (const name of membersOf(schema, document)) if (isLikeAnId(name)) add({ ...route, where: 'body', name });
    }
  return [...places.values()];
}

function membersOf(schema: Schema | undefined, document: OpenApi, prefix = '', depth = 0): readonly string[] {
  if (schema === undefined || depth > DEPTH_MAX) return [];
  const { $ref: ref, properties = {}, items, anyOf = [], oneOf = [], allOf = [] } = schema;
  const into = (inner: Schema | undefined, at: string) => membersOf(inner, document, at, depth + 1);
  return [
    ...(ref === undefined ? [] : into(document.components.schemas[ref.split('/').at(-1)!], prefix)),
    ...Object.entries(properties).flatMap(([name, inner]) => [prefix + name, ...into(inner, `${prefix}${name}.`)]),
    ...(items === undefined ? [] : into(items, `${prefix}[].`)),
    ...[...anyOf, ...oneOf, ...allOf].flatMap((inner) => into(inner, prefix)),
  ];
}
