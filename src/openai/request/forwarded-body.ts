import { type CapField, foldName } from '#wire';
import type { Offer } from '#gateway';
import { type ChatBody, REASONING_IF_LISTED } from './chat-schema.ts';
import { reasoningEffort, refusesReasoning } from './reasoning-effort.ts';
import {
  BY_A_RULE,
  CAPS,
  COSTLY,
  FOR_ANOTHER_ROUTER,
  FOR_THE_GATEWAY,
  MINIMA,
  MORE_COMPLETIONS,
  OF_A_REQUEST,
  PUBLISHED,
  REASONING_BOUNDS,
  REDIRECTING,
} from './field-names.ts';

interface ForwardedBody {
  readonly body: Record<string, unknown>;
  /**
   * Names of the fields that the consumer sent and `offer` does not get, as the consumer wrote them. The path to a
   * nested field has dots.
   */
  readonly dropped: readonly string[];
}

/** The cap of a completion at one offer. */
export interface ForwardedCap {
  /** No field may ask for more tokens than this. */
  readonly tokens: number;
  /** The field that carries the cap; null if no cap is sent. */
  readonly field: CapField | null;
}

/**
 * The body for `offer`. It has the published fields, and the further fields that the model lists (`params.forward`).
 * No field asks for more output than the cap, which is at most what the lock was computed with. `reasoningRefused`: the
 * offer has refused the field `reasoning` in this call.
 */
export function forwardedBody(
  asked: ChatBody,
  offer: Offer,
  { tokens: completionCap, field: capField }: ForwardedCap,
  reasoningRefused = false,
): ForwardedBody {
  const body: Record<string, unknown> = {};
  const dropped: string[] = [];
  for (const field of Object.keys(asked)) {
    if (FOR_THE_GATEWAY.has(field) || BY_A_RULE.has(field)) continue;
    const value = asked[field];
    if (PUBLISHED.has(field)) body[field] = value;
    else if (value !== null) {
      const sent = other(offer, field, value, completionCap, dropped);
      if (sent !== undefined) body[field] = sent;
    }
  }
  addReasoning(body, dropped, asked, { offer, cap: completionCap, refused: reasoningRefused });
  // A stream without usage cannot be billed.
  if (asked.stream === true) body['stream_options'] = { ...asked.stream_options, include_usage: true };
  body['model'] = offer.model!.upstreamModel;
  if (capField !== null) body[capField] = completionCap;
  return { body, dropped };
}

/** Adds the fields that say how much a model reasons. None of their bounds is above the cap. */
function addReasoning(
  body: Json,
  dropped: string[],
  asked: ChatBody,
  { offer, cap, refused }: { readonly offer: Offer; readonly cap: number; readonly refused: boolean },
): void {
  const { reasoning, reasoning_effort: effort, thinking, thinking_budget: budget } = asked;
  if (effort !== undefined) body['reasoning_effort'] = effort;
  if (thinking !== undefined) body['thinking'] = boundedReasoning(thinking, cap);
  if (budget !== undefined) body['thinking_budget'] = atMost(budget, cap);
  if (reasoning === undefined || reasoning === null) return;
  // A request of another API may be translated for a model of which nothing is listed. There the field would be refused
  // by services that know only the published ones, although the client never sent it.
  const isTranslated = asked[REASONING_IF_LISTED] === true;
  const isTaken = isTranslated ? lists(offer, 'reasoning') : goes(offer, 'reasoning', 'reasoning');
  if (isTaken && !refused && !refusesReasoning(offer)) body['reasoning'] = boundedReasoning(reasoning, cap);
  else if (isTranslated) dropped.push('reasoning');
  else {
    const translated = reasoningEffort(asked);
    Object.assign(body, translated.fields);
    dropped.push(...translated.dropped);
  }
}

/**
 * An unpublished field in the form that `offer` gets. If the offer does not get it, the result is undefined and
 * `dropped` gets its name.
 */
function other(offer: Offer, field: string, value: unknown, cap: number, dropped: string[]): unknown {
  const name = foldName(field);
  // A server written in C reads a name only up to U+0000, so it could see another name.
  const sent =
    !field.includes('\0') && goes(offer, field, name) ? boundedField(field, value, { offer, cap, dropped }) : undefined;
  if (sent === undefined) dropped.push(field);
  return sent;
}

/**
 * An unpublished field with its bounds lowered to the cap, at any depth; undefined if the offer may not get it.
 * `dropped` gets the paths of the members that it does not get.
 */
export function boundedField(field: string, value: unknown, { offer, ...bounds }: Omit<Bounds, 'known'>): unknown {
  const known = listed(offer, field);
  return bounded(field, foldName(field), value, { offer, ...bounds, known }, known);
}

function goes(offer: Offer, field: string, name: string): boolean {
  if (FOR_ANOTHER_ROUTER.has(field)) return false;
  if (listed(offer, field)) return true;
  // The operator chose the services in its own file, so they get all fields by default. A provider that dials in
  // lists the fields that it takes.
  const own = offer.endpoint.kind === 'direct';
  const all = (offer.model!.forward ?? (own ? 'all' : null)) === 'all';
  return all && !REDIRECTING.has(name) && (own || !COSTLY.has(name));
}

/** Whether the block of an offer names the field, or says that the model takes all. */
const lists = (offer: Offer, field: string): boolean => offer.model!.forward === 'all' || listed(offer, field);

function listed({ model }: Offer, field: string): boolean {
  const forward = model!.forward;
  return Array.isArray(forward) && (forward as readonly string[]).includes(field);
}

/** The bounds for a field and everything inside it. */
interface Bounds {
  readonly offer: Offer;
  readonly cap: number;
  readonly dropped: string[];
  /** The model lists the outermost field. */
  readonly known: boolean;
}

/**
 * The field with its bounds lowered to the cap; undefined if the field may not be sent. A model that lists its own
 * name of the cap gets the cap under that name.
 */
function bounded(path: string, name: string, value: unknown, bounds: Bounds, isListed = false): unknown {
  const { cap } = bounds;
  if (CAPS.has(name)) return isListed ? cap : undefined;
  if (MORE_COMPLETIONS.has(name)) return undefined;
  if (MINIMA.has(name) || REASONING_BOUNDS.has(name)) return atMost(value, cap);
  if (Array.isArray(value)) return elements(path, value, bounds);
  return typeof value === 'object' && value !== null ? inside(path, value as Json, bounds) : value;
}

function elements(path: string, value: readonly unknown[], bounds: Bounds): readonly unknown[] {
  const kept = value.map((element, index) =>
    typeof element === 'object' && element !== null ? bounded(`${path}[${index}]`, '', element, bounds) : element,
  );
  return kept.some((element, index) => element !== value[index]) ? kept : value;
}

type Json = Record<string, unknown>;

/**
 * Returns the same object if nothing in it changes, because numbers that a double cannot hold are objects here, too.
 */
function inside(path: string, value: Json, bounds: Bounds): Json {
  const { dropped } = bounds;
  const kept: [string, unknown][] = [];
  let changed = false;
  for (const [key, member] of Object.entries(value)) {
    const before = dropped.length;
    const sent = mayStand(key, bounds) ? bounded(`${path}.${key}`, foldName(key), member, bounds) : undefined;
    if (sent === undefined) dropped.push(`${path}.${key}`);
    else kept.push([key, sent]);
    changed ||= sent !== member || dropped.length > before;
  }
  return changed ? Object.fromEntries(kept) : value;
}

/**
 * Whether a member of an object inside a field may be forwarded. If the model lists the field, its members are
 * known. `n` is never forwarded, because further completions are not priced.
 */
function mayStand(key: string, { offer, known }: Bounds): boolean {
  const name = foldName(key);
  if (key.includes('\0') || name === 'n') return false;
  return known || listed(offer, key) || !(REDIRECTING.has(name) || OF_A_REQUEST.has(name));
}

/** `reasoning` or `thinking` with its bounds lowered to the cap. Returns the same value if it has none. */
export function boundedReasoning(value: unknown, cap: number): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const given = value as Json;
  const asks = Object.keys(given).filter((key) => CAPS.has(foldName(key)) || REASONING_BOUNDS.has(foldName(key)));
  return asks.length === 0
    ? value
    : { ...given, ...Object.fromEntries(asks.map((key) => [key, atMost(given[key], cap)])) };
}

/**
 * A value that is not a number becomes the cap. Some servers parse strings as numbers, even strings that this
 * gateway would not.
 */
function atMost(value: unknown, cap: number): unknown {
  if (value === null || value === undefined) return value;
  return typeof value === 'number' ? Math.min(value, cap) : cap;
}
