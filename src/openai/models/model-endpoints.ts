import { viewPrice, viewHealth, type Offer, type OfferStatus, type HealthSources } from '#gateway';
import { slugOf } from '#pages';
import { chats } from '../embeddings/is-embedder.ts';
import { FREE_TOKENS, viewMediaEntry } from './media-models.ts';
import { parametersOf, viewModel, viewUnitPricing } from './models-view.ts';

/**
 * `GET /models/{name}/endpoints`: the providers of a model of any kind, their prices, and how well they have served it
 * lately. `offers` is not empty.
 */
export function viewEndpoints(offers: readonly Offer[], healthSources: HealthSources): Record<string, unknown> {
  const { id, display_name, created, description, architecture } =
    offers[0]!.primitive === 'model' ? viewModel(offers) : viewMediaEntry(offers);
  return {
    data: {
      id,
      name: display_name,
      created,
      description,
      // Tokenizers and prompt formats are not known here.
      architecture: { ...architecture, tokenizer: null, instruct_type: null },
      endpoints: offers.map((offer) => viewEndpoint(offer, healthSources)),
    },
  };
}

/**
 * One offer of a model. `status` is a number, as other clients expect; `health` says the same as a word. Figures
 * that are not measured are null.
 */
function viewEndpoint(offer: Offer, healthSources: HealthSources): Record<string, unknown> {
  const { status: health, ...standing } = viewHealth(offer, healthSources);
  const isModel = offer.primitive === 'model';
  const chooses = isModel && chats(offer.model!);
  return {
    tag: slugOf(offer.provider.name),
    model_id: offer.service,
    model_name: offer.displayName,
    name: `${offer.provider.name} | ${offer.service}`,
    provider_name: offer.provider.name,
    provider_id: offer.provider.id,
    // Other clients refuse a null here, so it is the context that locks are computed from.
    context_length: offer.model?.contextLength ?? 0,
    max_completion_tokens: offer.model?.maxOutputTokens ?? null,
    max_prompt_tokens: null,
    quantization: null,
    pricing: isModel ? viewUnitPricing(offer.price.rates) : { ...FREE_TOKENS, ...viewPrice(offer) },
    status: STATUS_NUMBERS[health],
    health,
    ...standing,
    latency_last_30m: null,
    throughput_last_30m: null,
    uptime_last_5m: null,
    uptime_last_30m: null,
    uptime_last_1d: null,
    supports_implicit_caching: false,
    supports_tool_choice: { auto: chooses, none: chooses, required: chooses, function: chooses },
    supported_parameters: isModel ? parametersOf(offer) : (offer.media?.supportedParams ?? []),
    ...(offer.model?.imageTokensMax ? { image_tokens_max: offer.model.imageTokensMax } : {}),
    ...(offer.model?.hiddenReasoning ? { hidden_reasoning_tokens: offer.model.hiddenReasoning } : {}),
  };
}

/** 0: the offer can be called. Below 0: it cannot be called at the moment. */
const STATUS_NUMBERS: Readonly<Record<OfferStatus, number>> = { healthy: 0, cooling_down: -1, away: -2 };
