import { GatewayError } from '#errors';
import type { Health, Offer } from '#catalog';
import type { CallRequest } from '../call.ts';
import { declares, undeclared } from '../declared.ts';

/* Why no offer can serve a request. */

/** Maximum numbers of providers and fields that an error names, and of characters of a field. */
const PROVIDERS_SHOWN = 10;
const FIELDS_SHOWN = 5;
const FIELD_SHOWN = 64;
const NAME_SHOWN = 128;

const nameOf = ({ targets }: CallRequest): string => targets[0]!.slice(0, NAME_SHOWN);

/** The offers that may serve the request, and get all of its fields if its consumer wants that. */
export function takingAll({ preferences, lacks, admitted }: CallRequest, all: readonly Offer[]): readonly Offer[] {
  const offers = admitted === undefined ? all : admitted(all);
  if (!preferences.requireParameters || lacks === undefined) return offers;
  return offers.filter((offer) => lacks(offer).length === 0);
}

/** The error for a request of which no offer gets all fields. */
export function lacking(request: CallRequest, offers: readonly Offer[]): GatewayError {
  const each = offers.slice(0, PROVIDERS_SHOWN).map((offer) => {
    const fields = request.lacks?.(offer).slice(0, FIELDS_SHOWN) ?? [];
    return `${offer.provider.name} does not get ${fields.map((field) => field.slice(0, FIELD_SHOWN)).join(', ')}`;
  });
  return new GatewayError(
    'not_found',
    `No provider of ${nameOf(request)} gets all fields of the request: ${each.join('; ')}`,
    { param: 'provider.require_parameters' },
  );
}

/** The error for a request whose preferences no healthy offer meets. */
export function unavailable(request: CallRequest, all: readonly Offer[], health: Health): GatewayError {
  const name = nameOf(request);
  const { order, only, ignore, maxPrice, declared, requireParameters } = request.preferences;
  const { account } = request.caller;
  const offered = declared === null ? all : all.filter((offer) => declares(offer, declared));
  if (declared !== null && offered.length === 0) return undeclared(name, declared, all);
  const unasked = maxPrice === null && !requireParameters && order.length + only.length + ignore.length === 0;
  if (unasked && offered.some((offer) => health.available(offer, account))) {
    const message = `No provider of ${name} at about its usual price is healthy at the moment. Others ask for much more: name one in provider.order, or accept its price with provider.max_price`;
    return new GatewayError('no_provider_healthy', message, { retryAfterS: health.retryAfterS(offered, account) });
  }
  if (offered.some((offer) => health.available(offer, account))) {
    const names = [...new Set(offered.map(({ provider }) => provider.name))].slice(0, PROVIDERS_SHOWN).join(', ');
    const what = declared === null ? 'It is offered by' : 'Those that declare what is asked for are';
    return new GatewayError(
      'not_found',
      `No provider of ${name} meets the routing preferences (order, only, ignore, max_price, require_parameters). ${what} ${names}`,
      { param: 'provider' },
    );
  }
  return new GatewayError('no_provider_healthy', `No provider of ${name} is healthy at the moment`, {
    retryAfterS: health.retryAfterS(offered, account),
  });
}
