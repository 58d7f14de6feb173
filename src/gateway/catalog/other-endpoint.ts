import type { Primitive } from '#config';
import type { Catalog } from './catalog.ts';

/** The routes of each kind of model, in words. */
const ENDPOINTS: readonly (readonly [Primitive, string, (name: string) => string])[] = [
  ['model', 'a chat model', () => 'ask it at /chat/completions'],
  ['image', 'an image model', (name) => `ask it at /images/generations, or as image/${name} in a chat`],
  ['video', 'a video model', (name) => `ask it at /videos, or as video/${name} in a chat`],
];

/**
 * Text for an error: the route for a name that belongs to another kind of model than `asked`; empty if no model has the
 * name.
 */
export function otherEndpoint(name: string, asked: Primitive, catalog: Pick<Catalog, 'knows'>): string {
  const found = ENDPOINTS.find(([primitive]) => primitive !== asked && catalog.knows(name, primitive));
  return found === undefined ? '' : `It is ${found[1]}: ${found[2](name)}`;
}
