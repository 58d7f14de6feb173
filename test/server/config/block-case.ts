import type { MediaFacts, ServiceConfig } from '../../../src/server/config/service.ts';
import type { Changes } from './load.ts';

/** An option of a block, as a file sets it. */
export interface Case {
  /** As the file has it, and values that it must refuse. */
  readonly toml: string;
  readonly wrong: readonly string[];
  readonly of: (config: ServiceConfig) => unknown;
  readonly is: unknown;
  /** Absent where the option must be given. */
  readonly fallback?: unknown;
  /** What else the block needs, or must not have, for it. */
  readonly with?: Changes;
  /** The option that a registration has instead, if two options mean the same. */
  readonly writtenAs?: string;
}

export const media = ({ service }: ServiceConfig): MediaFacts | null =>
  service.primitive === 'image' || service.primitive === 'video' ? service.media : null;
export const text = { wrong: ['3', '""', 'true'] };
export const names: Readonly<Record<string, Case>> = {
  name: { ...text, toml: '"b"', of: ({ service }) => service.name, is: 'b' },
  display_name: { ...text, toml: '"B"', of: ({ service }) => service.displayName, is: 'B', fallback: 'acme/small' },
  provider_name: { ...text, toml: '"B"', of: ({ service }) => service.providerName, is: 'B', fallback: 'acme' },
  description: {
    toml: '"a\\nb"',
    wrong: ['3', `"${'x'.repeat(2_001)}"`, '"a\\u202eb"', '"a\\tb"'],
    of: ({ service }) => service.description,
    is: 'a\nb',
    fallback: '',
  },
};
/** What a service of any kind that has facts declares about itself. */
const declared = ({ service }: ServiceConfig) =>
  service.primitive === 'model' ? service.model : 'media' in service ? service.media : null;
export const declarations: Readonly<Record<string, Case>> = {
  data_collection: {
    toml: '"deny"',
    wrong: ['true', '"maybe"', '""'],
    of: (c) => declared(c)?.collectsNothing,
    is: true,
    fallback: undefined,
  },
  zdr: { toml: 'true', wrong: ['"yes"', '1'], of: (c) => declared(c)?.zdr, is: true, fallback: undefined },
  region: {
    toml: '"eu-west-1"',
    wrong: ['3', '""', '"EU"', '"eu "', `"${'x'.repeat(33)}"`, '["eu"]'],
    of: (c) => declared(c)?.region,
    is: 'eu-west-1',
    fallback: undefined,
  },
};
export const quantization: Readonly<Record<string, Case>> = {
  quantization: {
    toml: '"fp8"',
    wrong: ['8', '"FP8"', '"unknown"', '"fp7"'],
    of: ({ service }) => service.primitive === 'model' && service.model.quantization,
    is: 'fp8',
    fallback: undefined,
  },
};
export const model: Case = {
  toml: '"m"',
  wrong: ['3', '""', `"${'x'.repeat(257)}"`],
  of: (c) => media(c)?.upstreamModel,
  is: 'm',
};
export const base: Case = {
  toml: '"https://x.example/"',
  wrong: ['3', '"ftp://x"'],
  of: ({ target }) => target.kind === 'http' && target.url,
  is: 'https://x.example/v1',
};
export const key: Case = {
  toml: '"std::env::KEY"',
  wrong: ['3', '"a b"', '"$KEY"'],
  of: ({ target }) => target.kind === 'http' && target.apiKey,
  is: 'secret-1',
  fallback: null,
};
/** A longest wait for a reply, in milliseconds. */
export const timeout = (field: 'headMs' | 'firstEventMs'): Case => ({
  toml: '20000',
  wrong: ['99', '3600001', '"20s"'],
  of: ({ target }) => target.kind === 'http' && target.timeouts?.[field],
  is: 20_000,
  fallback: undefined,
});
export const list = (
  field: 'supportedParams' | 'aspectRatios' | 'formats' | 'resolutions' | 'durations',
  good: string,
  bad: string,
): Case => ({
  toml: `["${good}", "${good}"]`,
  wrong: ['"x"', '[3]', `["${bad}"]`, `[${'"x",'.repeat(200)}]`],
  of: (c) => media(c)?.[field],
  is: [good],
  fallback: [],
});

const sdkOf = ({ target }: ServiceConfig) => (target.kind === 'sdk' ? target : null);
const inPackage = {
  'params.api_base': null,
  'params.api_key': null,
  'params.sdk': '"@ai-sdk/openai-compatible"',
} as const;
/** Options of a package of the AI SDK. This checkout has the package installed. */
export const sdk: Readonly<Record<string, Case>> = {
  'params.sdk': {
    toml: '"@ai-sdk/openai-compatible#createOpenAICompatible"',
    wrong: ['3', '""', '"../mine"', '"@ai-sdk/"', '"@ai-sdk/is-not-installed"', '"/etc"'],
    of: (one) => sdkOf(one)?.sdk,
    is: '@ai-sdk/openai-compatible#createOpenAICompatible',
    fallback: undefined,
    with: { 'params.api_base': null, 'params.api_key': null },
  },
  'params.sdk_settings': {
    toml: '{ region = "eu", "headers.x-org" = "acme", retries = 2, fast = true }',
    wrong: ['3', '{ region = [1] }', '{ "a b" = 1 }', '{ __proto__ = 1 }', '{ region = "std::env::KEY" }'],
    of: (one) => sdkOf(one)?.settings,
    is: { region: 'eu', 'headers.x-org': 'acme', retries: 2, fast: true },
    fallback: {},
    with: inPackage,
  },
  'params.sdk_secrets': {
    toml: '{ apiKey = "std::env::KEY" }',
    wrong: ['3', '{ apiKey = "the-secret-itself" }', '{ apiKey = "std::env::NOT_SET" }', '{ apiKey = 3 }'],
    of: (one) => sdkOf(one)?.secrets,
    is: { apiKey: 'secret-1' },
    fallback: {},
    with: inPackage,
  },
};
