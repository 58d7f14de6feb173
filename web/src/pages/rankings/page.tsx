import type { ReactNode } from 'react';
import { useMarketFigures } from '../../api/analytics.ts';
import type { MarketFigures } from '../../api/figures.ts';
import { BOOT } from '../../app/boot.ts';
import { useSearchState } from '../../app/search.ts';
import { Button } from '../../ui/button.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Heading } from '../../ui/heading.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { saveFile } from '../../ui/save-file.ts';
import { Time } from '../../ui/time.tsx';
import { Charts, Totals } from './charts.tsx';
import { csvOf } from './csv.ts';
import { ByKind, TopServices } from './tables.tsx';

const DEFAULTS = { days: '7' };
const RANGES = [
  { value: '7', text: '7 days' },
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
];

export default function RankingsPage(): ReactNode {
  return BOOT.analytics ? <Rankings /> : <NoFigures />;
}

function Rankings(): ReactNode {
  const [{ days }, set] = useSearchState(DEFAULTS);
  const range = RANGES.find(({ value }) => value === days) ?? RANGES[0]!;
  const query = useMarketFigures(Number(range.value));
  return (
    <>
      <Heading
        title="Rankings"
        lead="What is used most on this gateway, by day. Figures of days that are over do not change."
        action={
          <>
            <Choice label="Range" options={RANGES} chosen={range.value} onChoose={(value) => set({ days: value })} />
            <Button disabled={!query.data} onClick={() => query.data && save(query.data)}>
              Save as CSV
            </Button>
          </>
        }
      />
      <QueryView query={query}>
        {(figures) => (
          <div className={`grid gap-5 ${query.isPlaceholderData ? 'opacity-60' : ''}`}>
            <Totals figures={figures} />
            <Charts figures={figures} />
            <div className="grid items-start gap-5 lg:grid-cols-[minmax(0,1fr)_380px]">
              <TopServices figures={figures} />
              <ByKind figures={figures} />
            </div>
            <AsOf figures={figures} />
          </div>
        )}
      </QueryView>
    </>
  );
}

function save(figures: MarketFigures): void {
  const { start_date, end_date } = figures.date_range;
  saveFile(`tollgate-${start_date}-${end_date}.csv`, new Blob([csvOf(figures)], { type: 'text/csv' }));
}

function AsOf({ figures: { as_of, date_range } }: { readonly figures: MarketFigures }): ReactNode {
  return (
    <p className="text-sm text-soft">
      UTC days from {date_range.start_date} to {date_range.end_date}.{' '}
      {as_of !== null && (
        <>
          Calls are counted up to <Time at={as_of} exact />.
        </>
      )}
    </p>
  );
}

function NoFigures(): ReactNode {
  return (
    <>
      <Heading title="Rankings" />
      <Empty
        heading="h2"
        title="This gateway shows no figures."
        text="Its operator keeps them back. Each service still shows its price and how well it is served."
      />
    </>
  );
}
