import { lazy, Suspense, useLayoutEffect, useState, type ReactNode } from 'react';
import { useArrival } from '../../account/signed-in.tsx';
import { OWN, payBy } from '../../api/acting.ts';
import { useSearchState } from '../../app/search.ts';
import { useTitle } from '../../app/title.ts';
import { Empty } from '../../ui/empty.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Balance } from './account-state.tsx';
import { BarPlace } from './bar-actions.tsx';
import { type Service, useCatalogue } from './catalogue.ts';
import { usePollAgain } from './use-look-again.ts';
import { findService, firstService } from './picker/search.ts';
import { ServicePicker } from './picker/picker.tsx';
import { usePayers, WhoPays } from './who-pays.tsx';

const ChatPanel = lazy(() => import('./chat/chat-panel.tsx'));
const ToolPanel = lazy(() => import('./tool/tool-panel.tsx'));
const ImagePanel = lazy(() => import('./image/image-panel.tsx'));
const EmbedPanel = lazy(() => import('./one-call/embed-panel.tsx'));
const RerankPanel = lazy(() => import('./one-call/rerank-panel.tsx'));
const ModerationPanel = lazy(() => import('./one-call/moderation-panel.tsx'));
const SpeechPanel = lazy(() => import('./audio/speech-panel.tsx'));
const TranscriptionPanel = lazy(() => import('./audio/transcription-panel.tsx'));
const VideoPanel = lazy(() => import('./video/video-panel.tsx'));

const DEFAULTS = { m: '', kind: '', tool: '' };

/**
 * A page to try any service of the gateway with the reader's own balance. The address names the service:
 * `?m=demo/chat`.
 */
export default function PlaygroundPage(): ReactNode {
  const catalogue = useCatalogue();
  const { session, waiting } = useArrival();
  const payers = usePayers(session);
  return (
    <>
      <h1 className="sr-only">Playground</h1>
      {waiting || payers.waiting ? (
        <Loading />
      ) : (
        <QueryView query={catalogue} loading={<Loading />}>
          {(services) => (
            <Playground key={`${session?.account} ${payers.chosen}`} services={services} payers={payers} />
          )}
        </QueryView>
      )}
    </>
  );
}

function Playground({
  services,
  payers,
}: {
  readonly services: readonly Service[];
  readonly payers: ReturnType<typeof usePayers>;
}): ReactNode {
  const [{ m, kind, tool }, set] = useSearchState(DEFAULTS);
  const [place, setPlace] = useState<HTMLElement | null>(null);
  const first = firstService(services);
  const found = m === '' ? (first === null ? null : { service: first, tool: null }) : findService(services, m, kind);
  const service = found?.service ?? null;
  // Files of videos are fetched by the browser itself, which names no organisation.
  const paying = service?.kind === 'video' ? null : payers.chosen;
  useLayoutEffect(() => payBy(paying), [paying]);
  usePollAgain(service === null || (service.kind === 'tool' && service.tools?.length === 0));
  useTitle(service === null ? null : `${service.name} · Playground`);
  const choose = (chosen: Service) => {
    const shared = services.some(({ name, kind: other }) => name === chosen.name && other !== chosen.kind);
    set({ m: chosen.name, kind: shared ? chosen.kind : '', tool: '' });
  };
  return (
    <BarPlace value={place}>
      <div className="mb-6 flex flex-wrap items-center justify-between gap-3">
        <ServicePicker services={services} chosen={service} onChoose={choose} />
        <div className="flex grow items-center gap-2 sm:grow-0">
          <div ref={setPlace} className="flex flex-wrap items-center gap-2" />
          <Balance of={paying === OWN ? null : paying} />
        </div>
      </div>
      {service !== null && service.kind !== 'video' && <WhoPays of={payers} />}
      {service === null ? (
        <Empty
          heading="h2"
          title={m === '' ? 'Nothing can be called yet.' : 'Nobody offers this now.'}
          text={
            m === ''
              ? 'No provider offers a service at this gateway. Services appear here when a provider connects.'
              : `There is no service named ${m.slice(0, 200)}. Choose another one above. If its provider connects, it appears here.`
          }
        />
      ) : (
        <Suspense fallback={<Skeleton className="h-96 w-full rounded-xl" />}>
          <Panel
            key={`${service.kind} ${service.name}`}
            service={service}
            services={services}
            tool={tool === '' ? (found?.tool ?? '') : tool}
            onTool={(name) => set({ m: service.name, tool: name })}
          />
        </Suspense>
      )}
    </BarPlace>
  );
}

function Panel({
  service,
  services,
  tool,
  onTool,
}: {
  readonly service: Service;
  readonly services: readonly Service[];
  readonly tool: string;
  readonly onTool: (name: string) => void;
}): ReactNode {
  switch (service.kind) {
    case 'tool':
      return <ToolPanel service={service} tool={tool} onTool={onTool} />;
    case 'image':
      return <ImagePanel service={service} />;
    case 'video':
      return <VideoPanel service={service} />;
    default:
      return <ModelPanel service={service} services={services} />;
  }
}

function ModelPanel({
  service,
  services,
}: {
  readonly service: Service;
  readonly services: readonly Service[];
}): ReactNode {
  switch (service.model?.makes) {
    case 'embeddings':
      return <EmbedPanel service={service} />;
    case 'rerank':
      return <RerankPanel service={service} />;
    case 'moderation':
      return <ModerationPanel service={service} />;
    case 'speech':
      return <SpeechPanel service={service} />;
    case 'transcription':
      return <TranscriptionPanel service={service} />;
    default:
      return <ChatPanel service={service} services={services} />;
  }
}

function Loading(): ReactNode {
  return (
    <div role="status">
      <span className="sr-only">Loading</span>
      <div className="mb-6 flex flex-wrap justify-between gap-3">
        <Skeleton className="h-16 w-full rounded-xl sm:w-[22rem]" />
        <Skeleton className="hidden h-10 w-36 sm:block" />
      </div>
      <Skeleton className="h-96 w-full rounded-xl" />
    </div>
  );
}
