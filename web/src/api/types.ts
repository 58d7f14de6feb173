import type { components, operations } from './schema.d.ts';

/** The named schemas of the API. */
export type Schemas = components['schemas'];

/** The JSON of an operation's success. */
export type AnswerOf<Id extends keyof operations> = operations[Id]['responses'] extends {
  readonly 200: { readonly content: { readonly 'application/json': infer T } };
}
  ? T
  : never;

/** The JSON that an operation takes. */
export type BodyOf<Id extends keyof operations> = operations[Id] extends {
  readonly requestBody?: { readonly content: { readonly 'application/json': infer T } };
}
  ? T
  : never;
