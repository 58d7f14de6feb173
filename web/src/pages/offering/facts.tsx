import type { ReactNode } from 'react';
import type { ServiceDetail } from '../../api/catalogue.ts';
import { Card } from '../../ui/card.tsx';
import { formatUsd } from '../../ui/money.tsx';
import { formatTokens } from '../../ui/number.ts';
import { priceLines } from '../../ui/price.tsx';
import { Time } from '../../ui/time.tsx';

const EXAMPLES = {
  model: 'An answer of 1,000 tokens to a prompt of 1,000 tokens',
  tool: 'One call',
  agent: 'One message',
  image: 'One image',
} as const;

/** The price of a service per unit, with an example in whole. */
export function PriceCard({ service }: { readonly service: ServiceDetail }): ReactNode {
  const { primitive, pricing, typical_usd, typical_seconds, providers } = service;
  const many = providers.length > 1;
  return (
    <Card title={many ? 'Price, from' : 'Price'}>
      <dl className="grid gap-2">
        {priceLines(primitive, pricing).map(({ amount, unit }) => (
          <div key={unit} className="flex items-baseline justify-between gap-4">
            <dt className="text-sm break-words text-soft">{unit}</dt>
            <dd className="figures font-semibold">{amount}</dd>
          </div>
        ))}
      </dl>
      <p className="mt-4 border-t border-line pt-4 text-sm text-soft">
        {primitive === 'video' ? `A video of ${typical_seconds} seconds` : EXAMPLES[primitive]} costs{' '}
        <b className="figures font-semibold text-ink">{typical_usd === 0 ? 'nothing' : formatUsd(typical_usd)}</b>
        {typical_usd > 0 && (
          <>
            , so one dollar pays for <b className="figures font-semibold text-ink">{uses(typical_usd)}</b> of them
          </>
        )}
        . The most that a call can cost is locked before it runs, and what it does not use comes back.
      </p>
    </Card>
  );
}

const uses = (usd: number) => Math.floor(1 / usd + 1e-9).toLocaleString('en-US');

/** Facts that a caller needs to know. */
export function FactsCard({ service }: { readonly service: ServiceDetail }): ReactNode {
  const { context_length, max_output_tokens, input_modalities, output_modalities } = service;
  const { durations, resolutions, aspect_ratios, providers, listed_since } = service;
  const facts: readonly (readonly [string, ReactNode] | null)[] = [
    context_length === null ? null : ['Context', `${formatTokens(context_length)} tokens`],
    max_output_tokens === null ? null : ['Longest answer', `${formatTokens(max_output_tokens)} tokens`],
    input_modalities.length === 0 ? null : ['Takes', input_modalities.join(', ')],
    output_modalities.length === 0 ? null : ['Gives', output_modalities.join(', ')],
    durations.length === 0 ? null : ['Lengths', durations.join(', ')],
    resolutions.length === 0 ? null : ['Resolutions', resolutions.join(', ')],
    aspect_ratios.length === 0 ? null : ['Aspect ratios', aspect_ratios.join(', ')],
    ['Providers', String(providers.length)],
    ['Listed', <Time key="listed" at={listed_since} />],
  ];
  return (
    <Card title="Facts">
      <dl className="grid gap-2 text-sm">
        {facts
          .filter((fact) => fact !== null)
          .map(([name, value]) => (
            <div key={name} className="flex items-baseline justify-between gap-6">
              <dt className="whitespace-nowrap text-soft">{name}</dt>
              <dd className="figures text-right">{value}</dd>
            </div>
          ))}
      </dl>
    </Card>
  );
}
