import { useQueryClient } from '@tanstack/react-query';
import { Code } from 'lucide-react';
import { useEffect, useState, type ReactNode } from 'react';
import type { Schemas } from '../../../api/client.ts';
import { request } from '../../../api/request.ts';
import { useSession } from '../../../api/session.ts';
import { Button } from '../../../ui/button.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { BALANCE_KEY, SignInToRun } from '../account-state.tsx';
import { type CallFault, faultOf } from '../calls/answer.ts';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import { BarActions } from '../bar-actions.tsx';
import type { Service } from '../catalogue.ts';
import { CodeDialog } from '../code/code-dialog.tsx';
import { codeOfVideo } from '../code/code-of-media.ts';
import { faultOfSeed } from '../image/image-ask.ts';
import { keepVideos, readVideos } from './kept-videos.ts';
import { firstAsk, priceOf, QUEUE_PATH, videoBody } from './video-ask.ts';
import { VideoFields } from './video-fields.tsx';
import { VideoTask } from './video-task.tsx';

/** The panel that queues videos, waits for them and plays them. */
export default function VideoPanel({ service }: { readonly service: Service }): ReactNode {
  const facts = service.video!;
  const queries = useQueryClient();
  const { session } = useSession();
  const account = session?.account ?? '';
  const [ask, setAsk] = useState(() => firstAsk(facts));
  const [videos, setVideos] = useState(() => readVideos(account, service.name));
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<CallFault | null>(null);
  const [code, setCode] = useState(false);
  const price = priceOf(facts, ask);
  const ready = (ask.prompt.trim() !== '' || ask.frame !== null) && faultOfSeed(ask.seed) === null;

  useEffect(() => {
    if (account !== '') keepVideos({ account, model: service.name, videos });
  }, [account, service.name, videos]);

  const queue = async () => {
    if (!ready || busy) return;
    setBusy(true);
    setFault(null);
    try {
      const reply = await request(QUEUE_PATH, {
        method: 'POST',
        // The button shows this price, so a more expensive provider must not be used.
        json: { ...videoBody(service.name, ask), ...(price === null ? {} : { max_cost: price }) },
      });
      const { id } = (await reply.json()) as Schemas['QueuedVideo'];
      const callId = reply.headers.get('x-generation-id');
      setVideos((all) => [{ taskId: id, callId, prompt: ask.prompt, at: Date.now() }, ...all]);
      void queries.invalidateQueries({ queryKey: BALANCE_KEY });
    } catch (error) {
      setFault(faultOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="grid items-start gap-6 lg:grid-cols-[minmax(0,23rem)_minmax(0,1fr)]">
      <BarActions>
        <Button onClick={() => setCode(true)}>
          <Code size={15} aria-hidden /> <span className="max-sm:sr-only">Show code</span>
        </Button>
      </BarActions>
      <form
        noValidate
        className="rounded-xl border border-line bg-card p-4 sm:p-5 lg:sticky lg:top-20"
        onSubmit={(event) => {
          event.preventDefault();
          void queue();
        }}
      >
        <VideoFields facts={facts} ask={ask} onChange={setAsk} />
        <div className="mt-5 grid gap-3">
          {session === null ? (
            <SignInToRun what="to generate" />
          ) : (
            <Button tone="primary" type="submit" disabled={!ready} busy={busy} className="figures">
              Generate{price !== null && ` – ${formatUsd(price)}`}
            </Button>
          )}
          {fault !== null && <CallFaultNote fault={fault} onAgain={() => void queue()} />}
        </div>
      </form>
      {videos.length === 0 ? (
        <div className="rounded-xl border border-dashed border-line">
          <Empty
            heading="h2"
            title="Your videos appear here."
            text="A video takes a while. You can leave: it goes on, and is charged when its file is there."
          />
        </div>
      ) : (
        <ol className="grid min-w-0 gap-8">
          {videos.map((video) => (
            <li key={video.taskId} className="min-w-0">
              <VideoTask video={video} />
            </li>
          ))}
        </ol>
      )}
      <CodeDialog open={code} onClose={() => setCode(false)} samples={() => codeOfVideo(service.name, ask)} />
    </div>
  );
}
