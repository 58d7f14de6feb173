import { GatewayError } from '#wire';
import { contextDeclared } from '#config';
import type { Catalog, Offer } from '#gateway';
import { aliasOf } from '../translated/model-alias.ts';
import { canChat, servicesOf } from './models-listing.ts';

/** A chat model as clients of Anthropic's API list it. */
interface AnthropicModel {
  readonly type: 'model';
  readonly id: string;
  readonly display_name: string;
  /** RFC 3339. */
  readonly created_at: string;
  readonly lifecycle: 'active';
  /** The largest context that a provider declares; null if none does. */
  readonly max_input_tokens: number | null;
  /** The most tokens of an answer that a provider declares; null if none does. */
  readonly max_tokens: number | null;
  /** Strict clients require these members. Nothing is known of them here. */
  readonly capabilities: null;
  readonly deprecated_at: null;
  readonly line: null;
  readonly retires_at: null;
}

export interface AnthropicPage {
  /** Id after which the page begins. */
  readonly after_id?: string;
  /** Id before which it ends. */
  readonly before_id?: string;
  /** Most models of the page. Default: all. */
  readonly limit?: number;
}

/** One model in the shape of Anthropic's API. `offers` is not empty. `isModel`: whether a model of a name exists. */
export function viewAnthropicModel(offers: readonly Offer[], isModel: (name: string) => boolean): AnthropicModel {
  const { service, displayName } = offers[0]!;
  return {
    type: 'model',
    // Claude Code ignores models with other names.
    id: aliasOf(service, isModel),
    display_name: displayName,
    created_at: new Date(Math.min(...offers.map((offer) => offer.createdAt))).toISOString(),
    lifecycle: 'active',
    max_input_tokens: largest(offers.map(({ model }) => (model ? contextDeclared(model) : null))),
    max_tokens: largest(offers.map(({ model }) => model?.maxOutputTokens ?? null)),
    capabilities: null,
    deprecated_at: null,
    line: null,
    retires_at: null,
  };
}

function largest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/**
 * The list that clients of Anthropic's API read. Throws GatewayError `invalid_request` for an id that is not in the
 * list.
 */
export function viewAnthropicModels(
  catalog: Pick<Catalog, 'offers' | 'knows'>,
  { after_id: after, before_id: before, limit }: AnthropicPage,
) {
  const isModel = (name: string) => catalog.knows(name, 'model');
  const models = servicesOf(catalog, 'model', null)
    .filter(canChat)
    .map((offers) => viewAnthropicModel(offers, isModel));
  const place = (id: string, param: string) => {
    const at = models.findIndex((model) => model.id === id || model.id === aliasOf(id, isModel));
    if (at === -1)
      throw new GatewayError('invalid_request', `${param} must be the id of a model in this list`, { param });
    return at;
  };
  const first = after === undefined ? 0 : place(after, 'after_id') + 1;
  const end = before === undefined ? models.length : place(before, 'before_id');
  const room = limit ?? models.length;
  // With `before_id`, the page ends before that model.
  const from = before === undefined ? first : Math.max(first, end - room);
  const data = models.slice(from, Math.min(end, from + room));
  const hasMore = before === undefined ? from + data.length < end : from > first;
  return { data, has_more: hasMore, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}
