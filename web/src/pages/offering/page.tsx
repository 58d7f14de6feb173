import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useServiceFigures } from '../../api/analytics.ts';
import { ApiError } from '../../api/api-error.ts';
import { useService, type ServiceDetail } from '../../api/catalogue.ts';
import { Link } from '../../app/link.tsx';
import { NotFound } from '../../app/not-found.tsx';
import { useTitle } from '../../app/title.ts';
import { buttonStyle } from '../../ui/button-style.ts';
import { Copy } from '../../ui/copy.tsx';
import { Heading } from '../../ui/heading.tsx';
import { KIND_NAMES, KindMark, KINDS, type Kind } from '../../ui/kind.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { AgentCard } from './agent-card.tsx';
import { FactsCard, PriceCard } from './facts.tsx';
import { Offers } from './offers.tsx';
import { Tools } from './tools.tsx';
import { PriceHistory, Usage } from './usage.tsx';
import { UseIt } from './use-it.tsx';

/** The page of one service of any kind. The first part of the path is the kind, the rest is the name. */
export default function OfferingPage({ params }: { readonly params: Readonly<Record<string, string>> }): ReactNode {
  const [path] = useLocation();
  const kind = KINDS.find((each) => path.startsWith(`/${each}s/`))!;
  const name = decode(params['*'] ?? '');
  const query = useService(kind, name);
  // A gateway that does not answer has the status 0.
  const { status } = query.error instanceof ApiError ? query.error : { status: 0 };
  if (status >= 400 && status < 500 && status !== 429)
    return (
      <NotFound
        title={`There is no ${KIND_NAMES[kind].one.toLowerCase()} of this name.`}
        text="The name may be mistyped, or its provider no longer offers it."
      />
    );
  return <QueryView query={query}>{(service) => <Offering service={service} />}</QueryView>;
}

/** Decodes the path. An address may contain a `%` that encodes nothing, so an error is caught. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function Offering({ service }: { readonly service: ServiceDetail }): ReactNode {
  const { primitive, name, display_name, description } = service;
  useTitle(display_name);
  const { data: figures, isLoading } = useServiceFigures(primitive, name);
  return (
    <>
      <Heading
        above={<Above kind={primitive} name={name} />}
        title={display_name}
        {...(description === '' ? {} : { lead: description })}
        action={
          <Link href={`/playground?m=${encodeURIComponent(name)}&kind=${primitive}`} className={buttonStyle('primary')}>
            Try it
          </Link>
        }
      />
      <div className="grid items-start gap-5 lg:grid-cols-[minmax(0,1fr)_320px]">
        <div className="grid min-w-0 gap-5">
          <UseIt service={service} />
          <Offers service={service} figures={figures?.providers ?? NO_FIGURES} />
          {primitive === 'tool' && <Tools service={name} />}
          {primitive === 'agent' && <AgentCard agent={name} />}
          {figures && <Usage figures={figures} />}
          {/* Reserves the space, so that the footer doesn't jump. */}
          {isLoading && <div aria-hidden className="h-96" />}
        </div>
        <div className="row-start-1 grid min-w-0 gap-5 lg:col-start-2">
          <PriceCard service={service} />
          <FactsCard service={service} />
          {figures && <PriceHistory figures={figures} />}
        </div>
      </div>
    </>
  );
}

const NO_FIGURES = [] as const;

function Above({ kind, name }: { readonly kind: Kind; readonly name: string }): ReactNode {
  return (
    <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <Link href={`/marketplace?kind=${kind}`} className="hover:underline">
        <KindMark kind={kind} />
      </Link>
      <span className="flex min-w-0 items-center gap-1">
        <span className="min-w-0 font-mono text-sm break-all">{name}</span>
        <Copy text={name} label="Copy the name" />
      </span>
    </span>
  );
}
