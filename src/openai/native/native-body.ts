import { foldName, GatewayError, isObject, RawJsonError, splice, uniqueMembersOf, withMembers } from '#wire';
import type { Offer } from '#gateway';
import {
  CAPS,
  COSTLY,
  FOR_ANOTHER_ROUTER,
  FOR_THE_GATEWAY,
  MORE_COMPLETIONS,
  REASONING_BOUNDS,
  REDIRECTING,
} from '../request/field-names.ts';
import type { Lists, NativeAsked, NativeWire } from './native-wire.ts';

interface NativeBody {
  readonly text: string;
  /** Names of the fields that the provider does not get, except fields for the gateway. */
  readonly dropped: readonly string[];
}

/**
 * The client's body for `offer`, with the provider's name of the model. `cap`: the most tokens of the answer; null
 * to keep the client's value. Throws GatewayError `invalid_request` for a duplicate key at any level.
 */
export function nativeBody({ wire, text, asked }: NativeAsked, offer: Offer, cap: number | null): NativeBody {
  const changes: Record<string, string | null> = {};
  const dropped: string[] = [];
  const lists = listsOf(offer);
  const changed = wire.changed(asked, text, lists);
  Object.assign(changes, changed.sent);
  dropped.push(...changed.dropped);
  for (const field of Object.keys(asked)) {
    if (FOR_THE_GATEWAY.has(field) && field !== 'metadata') changes[field] = null;
    else if (field !== wire.cap && !goes(field, wire, offer, lists)) {
      changes[field] = null;
      if (asked[field] !== null) dropped.push(field);
    }
  }
  changes['model'] = JSON.stringify(offer.model!.upstreamModel);
  if (cap !== null) {
    changes[wire.cap] = String(cap);
    bound(asked, cap, changes);
  }
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
  if (field.includes('\0') || CAPS.has(name) || MORE_COMPLETIONS.has(name)) return false;
  if (lists(field)) return true;
  if (FOR_ANOTHER_ROUTER.has(field) || REDIRECTING.has(name) || COSTLY.has(name)) return false;
  return wire.fields.has(field) || !Array.isArray(model!.forward);
}

/** Lowers the bound on thinking, if it is not below the cap. */
function bound({ thinking }: NativeAsked['asked'], cap: number, changes: Record<string, string | null>): void {
  if (!isObject(thinking)) return;
  const above = Object.entries(thinking).filter(
    ([name, tokens]) => REASONING_BOUNDS.has(foldName(name)) && typeof tokens === 'number' && tokens >= cap,
  );
  if (above.length === 0) return;
  // The bound on thinking has to be lower than that of the answer.
  const below = Math.max(1, cap - 1);
  changes['thinking'] = JSON.stringify({ ...thinking, ...Object.fromEntries(above.map(([name]) => [name, below])) });
}
