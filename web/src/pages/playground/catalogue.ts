import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { call, data } from '../../api/request.ts';
import { KINDS, type Kind } from '../../ui/kind.tsx';
import { formatUsd } from '../../ui/money.tsx';

/** A service that the playground can call. Prices are USD. */
export interface Service {
  readonly kind: Kind;
  /** The name that calls it: `demo/sage`. */
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly providers: readonly string[];
  /** One line: `$0.50 in · $1.50 out per 1M tokens`. */
  readonly price: string;
  readonly model?: ModelFacts;
  readonly tools?: readonly ToolFacts[];
  readonly agent?: { readonly perMessage: number; readonly nestedMax: number };
  readonly image?: ImageFacts;
  readonly video?: VideoFacts;
}

interface ModelFacts {
  /** USD for 1M tokens. */
  readonly prompt: number;
  readonly completion: number;
  readonly maxTokens: number | null;
  readonly takes: ReadonlySet<string>;
  readonly seesImages: boolean;
  /** It makes vectors, not text. */
  readonly embeds: boolean;
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

interface Listed {
  readonly id: string;
  readonly display_name?: string;
  readonly description?: string;
  readonly providers: readonly { readonly name: string; readonly pricing: Record<string, unknown> }[];
}

interface ListedModel extends Listed {
  readonly architecture: {
    readonly input_modalities: readonly string[];
    readonly output_modalities: readonly string[];
  };
  readonly supported_parameters: readonly string[];
  readonly top_provider: { readonly max_completion_tokens: number | null };
}

interface ListedMedia {
  readonly id: string;
  readonly providers: readonly string[];
  readonly supported_params: readonly string[];
  readonly constraints: {
    readonly aspect_ratios?: readonly string[];
    readonly formats?: readonly string[];
    readonly resolutions?: readonly string[];
    readonly durations?: readonly string[];
  };
  readonly pricing: {
    readonly generation?: number;
    readonly resolutions?: Readonly<Record<string, number>>;
    readonly variants?: Readonly<Record<string, number>>;
    readonly per_second?: Readonly<Record<string, number>>;
    readonly base?: number;
    readonly audio_multiplier?: number;
  };
}

interface ListedTool extends Listed {
  readonly tools: readonly {
    readonly name: string;
    readonly title?: string;
    readonly description?: string;
    readonly price: Readonly<Record<string, string>>;
  }[];
}

interface ListedModels {
  readonly data: readonly ListedModel[];
  readonly image_models: readonly ListedMedia[];
  readonly video_models: readonly ListedMedia[];
}

/** Everything that can be called, by kind and name. */
export function useCatalogue(): UseQueryResult<readonly Service[]> {
  return useQuery({
    queryKey: ['playground', 'catalogue'],
    staleTime: 60_000,
    queryFn: async () => {
      const [models, tools, agents] = await Promise.all([
        call<ListedModels>('/api/v1/models?type=all'),
        data<readonly ListedTool[]>('/api/v1/tools'),
        data<readonly Listed[]>('/api/v1/agents'),
      ]);
      const services = [
        ...models.data.map(toModel),
        ...tools.map(toTool),
        ...agents.map(toAgent),
        ...models.image_models.map(toImage),
        ...models.video_models.map(toVideo),
      ];
      return services.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
    },
  });
}

/** By kind, and models that make vectors after those that talk. */
const rank = ({ kind, model }: Service): number => KINDS.indexOf(kind) + (model?.embeds === true ? 0.5 : 0);

const prices = (listed: Listed, name: string): number[] =>
  listed.providers.map(({ pricing }) => pricing[name]).filter((price) => typeof price === 'number');

/** The price that a caller can get: that of the cheapest provider. */
const lowest = (found: readonly number[]): number => (found.length === 0 ? 0 : Math.min(...found));

const common = (kind: Kind, listed: Listed) => ({
  kind,
  name: listed.id,
  displayName: listed.display_name ?? listed.id,
  description: listed.description ?? '',
  providers: listed.providers.map(({ name }) => name),
});

function toModel(listed: ListedModel): Service {
  const { input_modalities: reads, output_modalities: writes } = listed.architecture;
  const [prompt, completion] = [lowest(prices(listed, 'prompt')), lowest(prices(listed, 'completion'))];
  const embeds = writes.includes('embeddings');
  return {
    ...common('model', listed),
    price: embeds
      ? `${formatUsd(prompt)} per 1M tokens`
      : `${formatUsd(prompt)} in · ${formatUsd(completion)} out per 1M tokens`,
    model: {
      prompt,
      completion,
      maxTokens: listed.top_provider.max_completion_tokens,
      takes: new Set(listed.supported_parameters),
      seesImages: reads.includes('image'),
      embeds,
    },
  };
}

function toTool(listed: ListedTool): Service {
  return {
    ...common('tool', listed),
    price: `${formatUsd(lowest(prices(listed, 'per_call')))} per call`,
    tools: listed.tools.map(({ name, title, description, price }) => ({
      name,
      title: title ?? name,
      description: description ?? '',
      price: priceOfTool(price),
    })),
  };
}

/** A tool that is charged by its use says the most that a call costs. */
function priceOfTool(price: Readonly<Record<string, string>>): string {
  if (price['per_call_max'] !== undefined) return `at most ${formatUsd(Number(price['per_call_max']))}`;
  return formatUsd(Number(price['per_call'] ?? 0));
}

function toAgent(listed: Listed): Service {
  const [perCall, perTask, nested] = ['per_call', 'per_task', 'nested_max'].map((name) =>
    lowest(prices(listed, name)),
  ) as [number, number, number];
  const own = perCall > 0 ? `${formatUsd(perCall)} per message` : `${formatUsd(perTask)} per task`;
  return {
    ...common('agent', listed),
    price: nested > 0 ? `${own}, up to ${formatUsd(nested)} for calls of its own` : own,
    agent: { perMessage: perCall > 0 ? perCall : perTask, nestedMax: nested },
  };
}

const commonMedia = (kind: Kind, { id, providers }: ListedMedia) => ({
  kind,
  name: id,
  displayName: id,
  description: '',
  providers,
});

function toImage(listed: ListedMedia): Service {
  const { generation, resolutions = {}, variants = {} } = listed.pricing;
  const found = [...(generation === undefined ? [] : [generation]), ...Object.values(resolutions)];
  const pairs = Object.keys(variants).filter((name) => !name.startsWith('edit/'));
  const qualities = [...new Set(pairs.map((name) => name.split('/')[1] ?? '').filter((name) => name !== ''))];
  return {
    ...commonMedia('image', listed),
    price: `${formatUsd(lowest([...found, ...pairs.map((name) => variants[name]!)]))} per image`,
    image: {
      takes: new Set(listed.supported_params),
      aspectRatios: listed.constraints.aspect_ratios ?? [],
      formats: listed.constraints.formats ?? [],
      tiers: [...new Set(['1K', ...Object.keys(resolutions), ...pairs.map((name) => name.split('/')[0]!)])].sort(),
      qualities,
    },
  };
}

function toVideo(listed: ListedMedia): Service {
  const { per_second: perSecond = {}, base = 0, audio_multiplier: audioMultiplier = 1 } = listed.pricing;
  const { resolutions, durations = [], aspect_ratios: aspectRatios = [] } = listed.constraints;
  return {
    ...commonMedia('video', listed),
    price: `${formatUsd(lowest(Object.values(perSecond)))} per second`,
    video: {
      takes: new Set(listed.supported_params),
      resolutions: resolutions ?? Object.keys(perSecond),
      durations,
      aspectRatios,
      perSecond,
      base,
      audioMultiplier,
    },
  };
}
