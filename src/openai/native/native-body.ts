import { foldName, GatewayError, RawJsonError, splice, uniqueMembersOf, withMembers } from '#wire';
import type { Offer } from '#gateway';
import {
  boundedField,
  boundedReasoning,
  CAPS,
  COSTLY,
  FOR_ANOTHER_ROUTER,
  FOR_THE_GATEWAY,
  MORE_COMPLETIONS,
  REDIRECTING,
} from '../chat/forwarded-body.ts';
import type { Lists, NativeRequestFacts, NativeWire } from './native-wire.ts';

interface NativeBody {
  readonly text: string;
  /** Names of the fields that the provider does not get, except fields for the gateway. */
  readonly dropped: readonly string[];
}

/** The cap of the answer at one offer. */
interface NativeCap {
  /** No field may ask for more tokens than this. */
  readonly tokens: number;
  /** The field of the cap gets this value. Otherwise the client's own value stays. */
  readonly isSet: boolean;
}

/**
 * The client's body for `offer`, with the provider's name of the model. No field asks for more output than the cap.
 * Throws GatewayError `invalid_request` for a duplicate key at any level.
 */
export function nativeBody({ wire, text, asked }: NativeRequestFacts, offer: Offer, cap: NativeCap): NativeBody {
  const changes: Record<string, string | null> = {};
  const dropped: string[] = [];
  const lists = listsOf(offer);
  const changed = wire.changed(asked, text, lists, offer);
  Object.assign(changes, changed.sent);
  dropped.push(...changed.dropped);
  for (const field of Object.keys(asked)) {
    if (FOR_THE_GATEWAY.has(field) && field !== 'metadata') changes[field] = null;
    else if (field !== wire.cap && !goes(field, wire, offer, lists)) {
      changes[field] = null;
      if (asked[field] !== null) dropped.push(field);
    } else if (field !== wire.cap) boundField(field, wire, { asked, offer, cap: cap.tokens, changes, dropped });
  }
  changes['model'] = JSON.stringify(offer.model!.upstreamModel);
  if (cap.isSet) changes[wire.cap] = String(cap.tokens);
  const whole = text.trim();
  try {
    // The gateway checks the last of several values of a key, but a provider may take the first.
    const members = uniqueMembersOf(whole);
    return { text: splice(whole, [withMembers(whole, { start: 0, end: whole.length }, changes, members)]), dropped };
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    throw new GatewayError('invalid_request', `The body cannot be forwarded: ${error.message}`, { cause: error });
  }
}

/** Whether the model of `offer` lists a name in `params.forward`. */
export function listsOf({ model }: Offer): Lists {
  const { forward } = model!;
  return (name) => Array.isArray(forward) && (forward as readonly string[]).includes(name);
}

/**
 * Whether a field may be forwarded. Fields that ask for more than the cap, cost more than the price, or send the
 * call elsewhere may not.
 */
function goes(field: string, wire: NativeWire, { model }: Offer, lists: Lists): boolean {
  const name = foldName(field);
  // One answer is priced, so `n` is not forwarded either: these APIs do not have it, but a service may.
  if (field.includes('\0') || CAPS.has(name) || MORE_COMPLETIONS.has(name) || name === 'n') return false;
  if (lists(field)) return true;
  if (FOR_ANOTHER_ROUTER.has(field) || REDIRECTING.has(name) || COSTLY.has(name)) return false;
  return wire.fields.has(field) || !Array.isArray(model!.forward);
}

interface Bounding {
  readonly asked: NativeRequestFacts['asked'];
  readonly offer: Offer;
  readonly cap: number;
  readonly changes: Record<string, string | null>;
  readonly dropped: string[];
}

/** Lowers what a forwarded field asks for beyond the cap, and removes members that multiply the output. */
function boundField(field: string, wire: NativeWire, { asked, changes, cap, ...bounding }: Bounding): void {
  const value: unknown = asked[field];
  if (value === null) return;
  let sent: unknown = value;
  if (!wire.fields.has(field)) sent = boundedField(field, value, { ...bounding, cap });
  else if (field === 'reasoning') sent = boundedReasoning(value, cap);
  // The bound on thinking has to be lower than that of the answer.
  else if (field === 'thinking') sent = boundedReasoning(value, Math.max(1, cap - 1));
  if (sent === undefined) {
    changes[field] = null;
    bounding.dropped.push(field);
  } else if (sent !== value && JSON.stringify(sent) !== JSON.stringify(value)) changes[field] = JSON.stringify(sent);
}
