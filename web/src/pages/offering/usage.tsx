import { useMemo, type ReactNode } from 'react';
import type { PriceVersion, ServiceFigures } from '../../api/figures.ts';
import { Card, Figure } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { formatMicroUsd, formatUsd } from '../../ui/usd.ts';
import { formatNumber, formatShare, formatShort } from '../../ui/number.ts';
import { Time } from '../../ui/time.tsx';

/** The use of a service in the last 30 days. */
export function Usage({ figures }: { readonly figures: ServiceFigures }): ReactNode {
  const { requests, failed, volume, tokens, by_day } = figures;
  const days = useMemo(() => by_day.map(({ date }) => date), [by_day]);
  const series = useMemo(
    () => [
      { name: 'Served', values: by_day.map((day) => day.requests) },
      { name: 'Failed', values: by_day.map((day) => day.failed), color: '--bad' },
    ],
    [by_day],
  );
  return (
    <Card title="The last 30 days">
      {requests + failed === 0 ? (
        <p className="text-soft">Nobody has called this service in the last 30 days.</p>
      ) : (
        <>
          <dl className="mb-5 grid grid-cols-2 gap-4 sm:grid-cols-4">
            <Figure name="Calls" value={formatShort(requests)} />
            <Figure name="Charged" value={formatMicroUsd(volume)} />
            {tokens > 0 && <Figure name="Tokens" value={formatShort(tokens)} />}
            <Figure name="Failed" value={formatShare(failed / (requests + failed))} />
          </dl>
          <Chart title="Calls by day" days={days} series={series} format={formatNumber} stacked />
        </>
      )}
    </Card>
  );
}

/** The past and present prices of all providers, newest first. */
export function PriceHistory({ figures }: { readonly figures: ServiceFigures }): ReactNode {
  const versions = figures.providers.flatMap(({ name, prices }) => prices.map((price) => ({ ...price, name })));
  const parts = new Set(versions.map(({ name, of }) => `${name} ${of}`));
  // Without a change there is no history to show.
  if (versions.length <= parts.size) return null;
  const newest = versions.toSorted((a, b) => b.from.localeCompare(a.from));
  return (
    <Card title="Prices over time">
      <ol className="grid gap-2 text-sm">
        {newest.map((version) => (
          <li
            key={`${version.name} ${version.of} ${version.from}`}
            className="flex flex-wrap items-baseline justify-between gap-x-4"
          >
            <span className="text-soft">
              <Time at={version.from} /> · {version.name}
              {version.of !== null && ` · ${version.of}`}
              {version.current && ' · now'}
            </span>
            <PriceOf version={version} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function PriceOf({ version }: { readonly version: PriceVersion }): ReactNode {
  const asked = Object.entries(version.pricing).filter(([, usd]) => usd > 0);
  if (asked.length === 0) return <b className="font-semibold">Free</b>;
  return (
    <span className="figures">
      {asked.map(([meter, usd], index) => (
        <span key={meter}>
          {index > 0 && ', '}
          <b className="font-semibold">{formatUsd(usd)}</b> <span className="text-soft">{UNITS[meter] ?? meter}</span>
        </span>
      ))}
    </span>
  );
}

/** Units of the meters by which providers charge. */
const UNITS: Readonly<Record<string, string>> = {
  prompt: 'per 1M tokens in',
  completion: 'per 1M tokens out',
  input_cache_read: 'per 1M tokens read from a cache',
  input_cache_write: 'per 1M tokens written to a cache',
  input_cache_write_1h: 'per 1M tokens written to a cache for an hour',
  audio: 'per 1M tokens of sound in',
  input_audio_cache: 'per 1M tokens of sound read from a cache',
  internal_reasoning: 'per 1M tokens of reasoning',
  audio_output: 'per 1M tokens of sound out',
  image_output: 'per 1M tokens of pictures out',
  web_search: 'per web search',
  character: 'per 1M characters spoken',
  image: 'per image',
  input_image: 'per image that is edited',
  second: 'per second',
  call: 'per call',
};
