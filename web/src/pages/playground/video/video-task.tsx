import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useEffect, useState, type ReactNode } from 'react';
import { type AnswerOf, api, call } from '../../../api/client.ts';
import { request } from '../../../api/request.ts';
import { Badge } from '../../../ui/badge.tsx';
import { buttonStyle } from '../../../ui/button-style.ts';
import { Button } from '../../../ui/button.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { formatDuration } from '../../../ui/time.tsx';
import { BALANCE_KEY } from '../account-state.tsx';
import { CallFacts } from '../calls/call-facts.tsx';
import { sizeText } from '../parts/part-view.tsx';
import type { QueuedVideo } from './kept-videos.ts';

type TaskAnswer = AnswerOf<'retrieveVideo'>;

const POLL_MS = 1_000;
const GOES_ON: ReadonlySet<string> = new Set(['queued', 'generating']);

const goesOn = (task: TaskAnswer | undefined): boolean => task !== undefined && GOES_ON.has(task.status);

/** A queued video, until it can be played here. */
export function VideoTask({ video }: { readonly video: QueuedVideo }): ReactNode {
  const queries = useQueryClient();
  const key = ['playground', 'video', video.taskId] as const;
  const task = useQuery({
    queryKey: key,
    queryFn: () =>
      call(
        api.POST('/api/v1/video/retrieve', {
          body: { task_id: video.taskId },
          headers: { accept: 'application/json' },
        }),
      ),
    staleTime: ({ state }) => (goesOn(state.data) ? 0 : Infinity),
    refetchInterval: ({ state }) => (goesOn(state.data) ? POLL_MS : false),
  });
  const [refusal, setRefusal] = useState<unknown>(null);
  const running = task.data === undefined ? task.error === null : goesOn(task.data);

  useEffect(() => {
    if (!running) void queries.invalidateQueries({ queryKey: BALANCE_KEY });
  }, [queries, running]);

  const cancel = async () => {
    setRefusal(null);
    try {
      await api.POST('/api/v1/video/cancel', { body: { task_id: video.taskId } });
    } catch (error) {
      setRefusal(error);
    }
    void queries.invalidateQueries({ queryKey: key });
  };
  return (
    <div className="grid gap-3">
      <div className="flex items-start gap-3">
        <p className="line-clamp-3 min-w-0 grow break-words">{video.prompt === '' ? 'From an image' : video.prompt}</p>
        <StatusBadge status={task.data?.status ?? 'queued'} />
      </div>
      {running && <Progress task={task.data} onCancel={() => void cancel()} />}
      {refusal !== null && <ErrorNote error={refusal} />}
      {task.error !== null && <ErrorNote error={task.error} />}
      {task.data?.status === 'failed' && (
        <ErrorNote
          title="The video was not made. Nothing is charged."
          error={task.data.error?.message ?? 'No reason was given'}
        />
      )}
      {task.data?.files?.map((file) => (
        <Player key={file.index} url={file.url} bytes={file.bytes} label={video.prompt} />
      ))}
      {!running && <CallFacts callId={video.callId} running={false} cost={null} />}
    </div>
  );
}

const STATUSES: Readonly<Record<string, readonly [tone: 'plain' | 'good' | 'bad' | 'warn', text: string]>> = {
  queued: ['plain', 'Queued'],
  generating: ['warn', 'Being made'],
  completed: ['good', 'Completed'],
  failed: ['bad', 'Failed'],
  cancelled: ['plain', 'Canceled'],
};

function StatusBadge({ status }: { readonly status: string }): ReactNode {
  const [tone, text] = STATUSES[status] ?? ['plain', status.slice(0, 40)];
  return <Badge tone={tone}>{text}</Badge>;
}

function Progress({
  task,
  onCancel,
}: {
  readonly task: TaskAnswer | undefined;
  readonly onCancel: () => void;
}): ReactNode {
  const progress = Math.max(0, Math.min(100, task?.progress ?? 0));
  return (
    <div className="rounded-xl border border-line bg-card p-5">
      <div className="flex items-center justify-between gap-4">
        <span role="status" className="figures text-sm text-soft">
          {progress} %
          {task?.estimated_seconds !== undefined && ` · about ${formatDuration(task.estimated_seconds * 1_000)} left`}
        </span>
        <Button size="small" onClick={onCancel}>
          Cancel
        </Button>
      </div>
      <progress
        aria-label="Progress of the video"
        max={100}
        value={progress}
        className="mt-3 h-2 w-full appearance-none overflow-hidden rounded-full bg-line [&::-moz-progress-bar]:bg-video [&::-webkit-progress-bar]:bg-line [&::-webkit-progress-value]:bg-video [&::-webkit-progress-value]:transition-[width]"
      />
    </div>
  );
}

/** Only addresses of this gateway are played. The gateway's answers contain no others. */
const isOwn = (url: string): boolean => url.startsWith('/api/v1/');

function Player({
  url,
  bytes,
  label,
}: {
  readonly url: string;
  readonly bytes: number;
  readonly label: string;
}): ReactNode {
  const source = usePlayable(isOwn(url) ? url : null);
  if (!isOwn(url)) return null;
  return (
    <figure className="m-0 overflow-hidden rounded-xl border border-line bg-card">
      {/* oxlint-disable-next-line jsx-a11y/media-has-caption -- nobody knows what is said in it */}
      <video
        src={source ?? undefined}
        controls
        playsInline
        preload="auto"
        aria-label={label.slice(0, 200)}
        className="max-h-[32rem] w-full bg-sunk"
      />
      <figcaption className="flex items-center px-3 py-2 text-sm text-soft">
        <span className="figures mr-auto">MP4 · {sizeText(bytes)}</span>
        <a href={source ?? url} download="video.mp4" className={buttonStyle('quiet', 'small')}>
          <Download size={15} aria-hidden /> Save
        </a>
      </figcaption>
    </figure>
  );
}

/**
 * A URL that a `<video>` element can load. Over plain http (except on localhost) browsers don't send which site makes a
 * request. So the gateway requires its page's header, which an element can't send. Then the page itself fetches the
 * file.
 */
function usePlayable(url: string | null): string | null {
  const [source, setSource] = useState<string | null>(isSecureContext ? url : null);
  useEffect(() => {
    if (isSecureContext || url === null) return;
    let made: string | null = null;
    let gone = false;
    void request(url)
      .then((answer) => answer.blob())
      .then((blob) => {
        if (!gone) setSource((made = URL.createObjectURL(blob)));
      })
      .catch(() => {});
    return () => {
      gone = true;
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, [url]);
  return source;
}
