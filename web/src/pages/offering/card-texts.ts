import type { ServiceDetail } from '../../api/catalogue.ts';
import { formatNumber, formatTokens } from '../../ui/number.ts';
import { formatUsd } from '../../ui/usd.ts';

/** A piece of a sentence, normal or strong. */
export type Piece = string | { readonly strong: string };

const EXAMPLES = {
  model: 'An answer of 1,000 tokens to a prompt of 1,000 tokens',
  tool: 'One call',
  agent: 'One message',
  image: 'One image',
} as const;

export const priceTitle = ({ providers }: ServiceDetail): string => (providers.length > 1 ? 'Price, from' : 'Price');

/** Says what a typical call costs, and how many of them a dollar pays for. */
export function priceSentence(service: ServiceDetail): readonly Piece[] {
  const { typical_usd, pricing } = service;
  const nested = service.primitive === 'agent' ? (pricing.nested_max ?? 0) : 0;
  if (nested > 0)
    return [
      'One message costs ',
      { strong: formatUsd(typical_usd) },
      ', and what the calls cost that the agent makes for it: together at most ',
      { strong: formatUsd(typical_usd + nested) },
      '. The most is locked before it runs, and what it does not use comes back.',
    ];
  const example = exampleOf(service);
  return [
    `${example} costs `,
    { strong: typical_usd === 0 ? 'nothing' : formatUsd(typical_usd) },
    ...(typical_usd > 0 ? [', so one dollar pays for ', { strong: uses(typical_usd) }, ' of them'] : []),
    '. The most that a call can cost is locked before it runs, and what it does not use comes back.',
  ];
}

function exampleOf({ primitive, typical_seconds, output_modalities: outputs, pricing }: ServiceDetail): string {
  if (primitive === 'video') return `A video of ${typical_seconds} seconds`;
  if (outputs.includes('speech')) return 'A minute of speech';
  if (outputs.includes('transcription')) return 'A transcript of a minute';
  if ((pricing.per_call ?? 0) > 0 && primitive === 'model') return EXAMPLES.tool;
  if (outputs.includes('embeddings')) return 'The vector of a text of 1,000 tokens';
  return EXAMPLES[primitive];
}

const uses = (usd: number) => formatNumber(Math.floor(1 / usd + 1e-9));

/** A fact for callers: its name and its value. `at` is an ISO 8601 time. */
export type Fact = readonly [name: string, value: string | { readonly at: string }];

/** The facts of a service, except its price. */
export function factsOf(service: ServiceDetail): readonly Fact[] {
  const { context_length, max_output_tokens, input_modalities, output_modalities } = service;
  const { durations, resolutions, aspect_ratios, providers, listed_since } = service;
  const facts: readonly (Fact | null)[] = [
    context_length === null ? null : ['Context', `${formatTokens(context_length)} tokens`],
    max_output_tokens === null ? null : ['Longest answer', `${formatTokens(max_output_tokens)} tokens`],
    input_modalities.length === 0 ? null : ['Takes', input_modalities.join(', ')],
    output_modalities.length === 0 ? null : ['Gives', output_modalities.join(', ')],
    durations.length === 0 ? null : ['Lengths', durations.join(', ')],
    resolutions.length === 0 ? null : ['Resolutions', resolutions.join(', ')],
    aspect_ratios.length === 0 ? null : ['Aspect ratios', aspect_ratios.join(', ')],
    ['Providers', String(providers.length)],
    ['Listed', { at: listed_since }],
  ];
  return facts.filter((fact) => fact !== null);
}
