import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { request } from '../../api/request.ts';

/** A JSON Schema, with the keywords that the gateway's document has. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly examples?: readonly unknown[];
  readonly $ref?: string;
}

export interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'cookie';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
  readonly example?: unknown;
}

export interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown; readonly $ref?: string }>>;
}
type Contents = Readonly<Record<string, Content>>;

interface Answer {
  readonly $ref?: string;
  readonly description?: string;
  readonly headers?: Readonly<Record<string, { readonly description?: string; readonly $ref?: string }>>;
  readonly content?: Contents;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content?: Contents };
  readonly responses?: Readonly<Record<string, Answer>>;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly tags?: readonly string[];
}

/** An operation with its place: `POST /api/v1/chat/completions`, in the chapter `Chat`. */
export interface Endpoint extends Operation {
  readonly method: string;
  readonly path: string;
  readonly chapter: string;
}

interface Chapter {
  readonly name: string;
  readonly description: string;
  readonly endpoints: readonly Endpoint[];
}

interface Source {
  readonly info: { readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly security: Operation['security'];
}

/** The OpenAPI document of the gateway, by chapters. */
export interface ApiDocument {
  readonly version: string;
  readonly description: string;
  readonly chapters: readonly Chapter[];
  readonly endpoints: readonly Endpoint[];
  /** Returns the part that a `$ref` names, and any other value itself. */
  readonly resolve: Resolve;
}

export type Resolve = <T extends { readonly $ref?: string }>(value: T) => T;

const OTHER = 'Other';

export function documentOf(source: Source): ApiDocument {
  const endpoints = Object.entries(source.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      ...operation,
      security: operation.security ?? source.security ?? [],
      chapter: operation.tags?.[0] ?? OTHER,
      method: method.toUpperCase(),
      path,
    })),
  );
  const names = [...source.tags, { name: OTHER, description: '' }];
  return {
    version: source.info.version,
    description: source.info.description,
    chapters: names
      .map(({ name, description }) => ({
        name,
        description,
        endpoints: endpoints.filter(({ chapter }) => chapter === name),
      }))
      .filter((chapter) => chapter.endpoints.length > 0),
    endpoints,
    resolve: (value) => {
      const names = value.$ref?.replace(/^#\//, '').split('/');
      if (names === undefined) return value;
      const part: unknown = names.reduce<unknown>(
        (whole, name) => (whole as Readonly<Record<string, unknown>> | undefined)?.[name],
        source,
      );
      return (part ?? value) as typeof value;
    },
  };
}

export const useApiDocument = (): UseQueryResult<ApiDocument> =>
  useQuery({
    queryKey: ['openapi'],
    staleTime: Infinity,
    queryFn: async () => documentOf((await (await request('/openapi.json')).json()) as Source),
  });

/** The address of an endpoint within the page. Swagger UI, which was here before, had the same. */
export const placeOf = ({ chapter, operationId }: Endpoint): string =>
  `#/${encodeURIComponent(chapter)}/${encodeURIComponent(operationId)}`;

/** The first example of a content, or null without examples. */
export function exampleOf(content: Content | undefined, resolve: Resolve): unknown {
  if (content?.example !== undefined) return content.example;
  const [first] = Object.values(content?.examples ?? {});
  return first === undefined ? null : (resolve(first).value ?? null);
}
