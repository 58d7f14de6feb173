import { GatewayError } from '#errors';
import type { NativeWireName } from '#config';
import type { Catalog, Offer } from '#catalog';
import type { ProviderPreferences } from '#call';
import type { NativeRequestFacts } from '../native/passthrough.ts';
import type { ChatWire, Translation } from './chat-wire.ts';
import type { WireRequest } from './wire-request.ts';

/** The fields that every wire has for the gateway. */
export interface RoutedBody {
  readonly model: string;
  readonly stream?: boolean | null;
  readonly models?: string[] | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly continue?: boolean | null;
  readonly max_cost?: number | string | null;
  readonly max_tool_rounds?: number | null;
  readonly tollgate?: { readonly task_id?: string | null; readonly context_id?: string | null } | null;
}

/**
 * Makes a function that says whether any provider of the given models speaks a wire. `catalog`: null if no provider
 * does.
 */
export function createSpeaks(
  catalog: Pick<Catalog, 'resolve' | 'knows'> | null,
  wire: NativeWireName,
): (models: readonly string[]) => boolean {
  if (catalog === null) return () => false;
  const speaks = (model: string): boolean =>
    offersOf(catalog, model).some((offer) => offer.model!.wires?.includes(wire));
  return (models) => models.some(speaks);
}

/** The offers of a model by its name; none for an unknown name. */
export function offersOf(catalog: Pick<Catalog, 'resolve' | 'knows'>, model: string): readonly Offer[] {
  if (!catalog.knows(model, 'model')) return [];
  try {
    return catalog.resolve(model, 'model').offers;
  } catch (error) {
    // The providers of this model have just gone. Preparing the call will report this.
    if (error instanceof GatewayError) return [];
    throw error;
  }
}

/**
 * Translates a request, without the parts that only providers of its wire can serve. `untranslatable`: why the
 * request cannot go to other providers; null if it can. Throws GatewayError for a request that is invalid at every
 * provider.
 */
export function translateAsFar<B extends RoutedBody>(
  wire: ChatWire<B>,
  requestBody: B,
  request: WireRequest,
): { readonly translation: Translation; readonly untranslatable: GatewayError | null } {
  request.isNative = true;
  try {
    return { translation: wire.translate(requestBody, request), untranslatable: null };
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'unprocessable' || wire.runsHere(requestBody, request))
      throw error;
    const rest = { ...requestBody, tools: null, tool_choice: null, mcp_servers: null };
    return { translation: wire.translate(rest, request), untranslatable: error };
  }
}

/**
 * A request as it came, and its translation for providers that do not speak its wire. A part that cannot be
 * translated is an error at those providers only. `native` is null if the gateway calls tools for the model, because
 * its turns are chat requests.
 */
export function asNative<B extends RoutedBody>(
  wire: ChatWire<B>,
  requestBody: B,
  bytes: Buffer,
  request: WireRequest,
): { readonly translation: Translation; readonly native: NativeRequestFacts | null } {
  const { translation, untranslatable: ofTools } = translateAsFar(wire, requestBody, request);
  const untranslatable = ofTools ?? translation.untranslatable ?? null;
  const { native } = wire;
  if (native === null || wire.runsHere(requestBody, request)) {
    if (untranslatable !== null) throw untranslatable;
    return { translation, native: null };
  }
  const text = bytes.toString('utf8');
  const fields = requestBody as unknown as NativeRequestFacts['requestBody'];
  return {
    translation,
    native: {
      wire: native,
      text,
      requestBody: fields,
      model: requestBody.model,
      headers: request.headers,
      isLossy: untranslatable !== null || translation.dropped.length > 0 || native.loses(text),
      untranslatable,
    },
  };
}
