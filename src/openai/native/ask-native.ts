import { GatewayError } from '#wire';
import type { NativeWireName } from '#config';
import type { Catalog, ProviderPreferences } from '#gateway';
import type { ChatWire, Translation, TranslationContext } from '../translated/translated-door.ts';
import type { NativeAsked } from './native-wire.ts';

/** The fields that every wire has for the gateway. */
export interface RoutedBody {
  readonly model: string;
  readonly stream?: boolean | null;
  readonly models?: string[] | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
}

/** Whether any provider of these models speaks a wire itself. `catalog`: null where none does. */
export function createSpeaks(
  catalog: Pick<Catalog, 'resolve' | 'knows'> | null,
  wire: NativeWireName,
): (models: readonly string[]) => boolean {
  if (catalog === null) return () => false;
  const speaks = (model: string): boolean => {
    if (!catalog.knows(model, 'model')) return false;
    try {
      return catalog.resolve(model, 'model').offers.some((offer) => offer.model!.wires?.includes(wire));
    } catch (error) {
      // Its providers went away a moment ago: preparing the call says so.
      if (error instanceof GatewayError) return false;
      throw error;
    }
  };
  return (models) => models.some(speaks);
}

/**
 * A translation without what only providers of the wire can do. `untranslatable` is why the request cannot go to
 * others; null where it can. Throws GatewayError for what is wrong at every provider.
 */
export function translateAsFar<B extends RoutedBody>(
  wire: ChatWire<B>,
  asked: B,
  context: TranslationContext,
): { readonly translation: Translation; readonly untranslatable: GatewayError | null } {
  try {
    return { translation: wire.translate(asked, context), untranslatable: null };
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'unprocessable' || wire.runsHere(asked, context))
      throw error;
    const rest = { ...asked, tools: null, tool_choice: null, mcp_servers: null };
    return { translation: wire.translate(rest, context), untranslatable: error };
  }
}

/**
 * A request as it came, and its translation for providers that do not speak its wire. What cannot be translated is an
 * error at those alone. `native` is null where the gateway calls tools for the model: such turns are chat.
 */
export function asNative<B extends RoutedBody>(
  wire: ChatWire<B>,
  asked: B,
  bytes: Buffer,
  context: TranslationContext,
): { readonly translation: Translation; readonly native: NativeAsked | null } {
  const { translation, untranslatable } = translateAsFar(wire, asked, context);
  const { native } = wire;
  if (native === null || wire.runsHere(asked, context)) return { translation, native: null };
  const text = bytes.toString('utf8');
  const fields = asked as unknown as NativeAsked['asked'];
  return {
    translation,
    native: {
      wire: native,
      text,
      asked: fields,
      model: asked.model,
      headers: context.headers,
      isLossy: untranslatable !== null || translation.dropped.length > 0 || native.loses(text),
      untranslatable,
    },
  };
}
