import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { isCallable, type Service as Listed, servicesQuery, type Tool, toolsQuery } from '../../api/catalogue.ts';
import { KINDS, type Kind } from '../../ui/kind.tsx';
import { shortPrice, toolPrice } from '../../ui/price-words.ts';

/** A service that the playground can call. Prices are in USD. */
export interface Service {
  readonly kind: Kind;
  /** The name by which it is called: `demo/chat`. */
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly providers: readonly string[];
  /** Whether at least one of its providers can be called now. */
  readonly callable: boolean;
  /** Calls of the last hour. */
  readonly requests: number;
  /** The price in one line: `$0.50 / $1.50 per 1M tokens in / out`. */
  readonly price: string;
  /** As the gateway lists it, for the search. */
  readonly listed: Listed;
  readonly model?: ModelFacts;
  readonly tools?: readonly ToolFacts[];
  readonly agent?: { readonly perMessage: number; readonly nestedMax: number };
  readonly image?: ImageFacts;
  readonly video?: VideoFacts;
}

interface ModelFacts {
  /** USD per 1M tokens. */
  readonly prompt: number;
  readonly completion: number;
  readonly maxTokens: number | null;
  readonly seesImages: boolean;
  /** Its answers, for which it has a panel. */
  readonly makes: 'text' | (typeof MADE)[number];
}

export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly price: string;
}

export interface ImageFacts {
  readonly takes: ReadonlySet<string>;
  readonly aspectRatios: readonly string[];
  readonly formats: readonly string[];
  readonly tiers: readonly string[];
  readonly qualities: readonly string[];
}

export interface VideoFacts {
  readonly takes: ReadonlySet<string>;
  readonly resolutions: readonly string[];
  readonly durations: readonly string[];
  readonly aspectRatios: readonly string[];
  readonly perSecond: Readonly<Record<string, number>>;
  readonly base: number;
  readonly audioMultiplier: number;
}

export const CATALOGUE_KEY = ['playground', 'catalogue'] as const;

/** All services that can be called, sorted by kind and name. */
export function useCatalogue(): UseQueryResult<readonly Service[]> {
  const queries = useQueryClient();
  return useQuery({
    queryKey: CATALOGUE_KEY,
    staleTime: 60_000,
    queryFn: async () => {
      const [listed, tools] = await Promise.all([queries.query(servicesQuery), queries.query(toolsQuery)]);
      const toolsOf = new Map(tools.map((each) => [each.id, each.tools ?? []]));
      return listed
        .filter(hasPanel)
        .map((each) => toService(each, toolsOf))
        .sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
    },
  });
}

/** The answers of models that are called at routes of their own. */
const MADE = ['embeddings', 'rerank', 'moderation', 'speech', 'transcription'] as const;
const PANELS: readonly string[] = [...MADE, 'text', 'image', 'audio', 'video', 'file'];

const hasPanel = ({ output_modalities: outputs }: Listed): boolean =>
  outputs.length === 0 || outputs.some((output) => PANELS.includes(output));

/** Sorts by kind. Chat models come before other models. */
const rank = ({ kind, model }: Service): number =>
  KINDS.indexOf(kind) + (MADE.findIndex((output) => output === model?.makes) + 1) / (MADE.length + 1);

function toService(listed: Listed, toolsOf: ReadonlyMap<string, readonly Tool[]>): Service {
  const { primitive: kind, name, display_name: displayName, description, providers, pricing } = listed;
  const { amount, unit } = shortPrice(kind, pricing);
  return {
    kind,
    name,
    displayName,
    description,
    providers: providers.map((each) => each.name),
    callable: isCallable(listed),
    requests: listed.requests,
    price: `${amount} ${unit}`.trim(),
    listed,
    ...factsOf(listed, toolsOf.get(name) ?? []),
  };
}

function factsOf(
  listed: Listed,
  tools: readonly Tool[],
): Pick<Service, 'model' | 'tools' | 'agent' | 'image' | 'video'> {
  const { pricing } = listed;
  switch (listed.primitive) {
    case 'model':
      return {
        model: {
          prompt: pricing.prompt ?? 0,
          completion: pricing.completion ?? 0,
          maxTokens: listed.max_output_tokens,
          seesImages: listed.input_modalities.includes('image'),
          makes: MADE.find((output) => listed.output_modalities.includes(output)) ?? 'text',
        },
      };
    case 'tool':
      return { tools: tools.map(toTool) };
    case 'agent':
      return { agent: { perMessage: pricing.per_call ?? pricing.per_task ?? 0, nestedMax: pricing.nested_max ?? 0 } };
    case 'image':
      return { image: imageFacts(listed) };
    case 'video':
      return { video: videoFacts(listed) };
  }
}

const toTool = ({ name, title, description, price }: Tool): ToolFacts => ({
  name,
  title: title ?? name,
  description: description ?? '',
  price: toolPrice(price),
});

function imageFacts({ pricing, supported_parameters, aspect_ratios, formats }: Listed): ImageFacts {
  const { resolutions = {}, variants = {} } = pricing;
  const pairs = Object.keys(variants).filter((name) => !name.startsWith('edit/'));
  return {
    takes: new Set(supported_parameters),
    aspectRatios: aspect_ratios,
    formats,
    tiers: [...new Set(['1K', ...Object.keys(resolutions), ...pairs.map((name) => name.split('/')[0]!)])].sort(),
    qualities: [...new Set(pairs.map((name) => name.split('/')[1] ?? '').filter((name) => name !== ''))],
  };
}

function videoFacts({ pricing, supported_parameters, resolutions, durations, aspect_ratios }: Listed): VideoFacts {
  const { per_second: seconds = {}, base = 0, audio_multiplier: audioMultiplier = 1 } = pricing;
  const perSecond = typeof seconds === 'number' ? {} : seconds;
  return {
    takes: new Set(supported_parameters),
    resolutions: resolutions.length > 0 ? resolutions : Object.keys(perSecond),
    durations,
    aspectRatios: aspect_ratios,
    perSecond,
    base,
    audioMultiplier,
  };
}
