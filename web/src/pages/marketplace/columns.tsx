import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { servicePath, type Service } from '../../api/catalogue.ts';
import { BOOT } from '../../app/boot.ts';
import { KIND_NAMES, KindMark, KindTile } from '../../ui/kind.tsx';
import { formatShare, formatShort, formatTokens } from '../../ui/number.ts';
import { Price } from '../../ui/price.tsx';
import { Status } from '../../ui/status.tsx';
import type { Column } from '../../ui/table.tsx';
import type { Row } from './filters.ts';

/** The columns of the marketplace. A phone shows only the first and the last one. */
export const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'name',
    head: 'Service',
    sort: ({ name }) => name,
    cell: (service) => <Name service={service} />,
    width: 'w-full max-w-0',
  },
  {
    id: 'kind',
    head: 'Kind',
    sort: ({ primitive }) => primitive,
    cell: ({ primitive }) => <KindMark kind={primitive} icon={false} />,
    from: 'md',
  },
  {
    id: 'abilities',
    head: 'Abilities',
    cell: (service) => <span className="block max-w-44 truncate text-sm text-soft">{abilitiesOf(service)}</span>,
    from: 'xl',
  },
  {
    id: 'providers',
    head: 'Providers',
    sort: ({ providers }) => providers.length,
    cell: ({ providers }) => <Providers providers={providers} />,
    from: 'lg',
  },
  {
    id: 'uptime',
    head: 'Status, last hour',
    sort: ({ uptime }) => uptime,
    cell: ({ status, uptime }) => (
      <span className="block leading-5">
        <Status status={status} uptime={uptime} />
        <span className="figures block text-xs text-soft">
          {uptime === null ? 'no calls' : `${formatShare(uptime)} up`}
        </span>
      </span>
    ),
    from: 'md',
  },
  ...(BOOT.analytics ? [calls()] : []),
  {
    id: 'price',
    head: 'Price',
    align: 'right',
    sort: ({ typical_usd }) => typical_usd,
    cell: ({ primitive, pricing, typical_usd: usd, typical_seconds: seconds }) => (
      <Price kind={primitive} pricing={pricing} typical={{ usd, seconds }} />
    ),
  },
];

/** Omitted if the gateway publishes no figures. */
function calls(): Column<Row> {
  return {
    id: 'calls',
    head: 'Calls, 30 days',
    align: 'right',
    sort: (row) => row.calls,
    cell: (row) => <span className="text-sm">{row.calls === null ? '–' : formatShort(row.calls)}</span>,
    from: 'lg',
  };
}

function Name({ service }: { readonly service: Service }): ReactNode {
  const { primitive, name, display_name, description, status, uptime } = service;
  return (
    <span className="flex min-w-0 items-center gap-2 sm:gap-3">
      <KindTile kind={primitive} />
      <span className="min-w-0 grow leading-5">
        <Link
          href={servicePath(service)}
          className="row-link block font-semibold hover:underline max-sm:line-clamp-2 sm:truncate"
        >
          {display_name}
        </Link>
        <span className="flex min-w-0 gap-2 text-sm text-soft">
          <span className="max-w-full shrink-0 truncate font-mono text-xs leading-5">{name}</span>
          <span className="hidden min-w-0 truncate sm:block">{description}</span>
        </span>
        <span className="flex gap-2 text-soft md:hidden">
          <Status status={status} uptime={uptime} />
          <span className="sr-only">{KIND_NAMES[primitive].one}</span>
        </span>
      </span>
    </span>
  );
}

function Providers({ providers }: Pick<Service, 'providers'>): ReactNode {
  const [first] = providers;
  return (
    <span className="block max-w-32 truncate text-sm text-soft">
      {providers.length === 1 && first ? first.name : `${providers.length} providers`}
    </span>
  );
}

/** Describes the abilities of a service in a few words. */
function abilitiesOf(service: Service): string {
  const { primitive, context_length, input_modalities, output_modalities, resolutions, durations } = service;
  switch (primitive) {
    case 'model': {
      const extra = input_modalities.filter((each) => each !== 'text');
      return [
        ...(context_length === null ? [] : [`${formatTokens(context_length)} context`]),
        ...(output_modalities.includes('text') ? extra : output_modalities),
      ].join(', ');
    }
    case 'image':
      return [...(input_modalities.includes('image') ? ['edits'] : []), ...resolutions].join(', ');
    case 'video':
      return [...durations, ...resolutions].join(', ');
    case 'tool':
    case 'agent':
      return '';
  }
}
