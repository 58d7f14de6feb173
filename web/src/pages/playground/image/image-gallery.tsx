import { Download, Pencil } from 'lucide-react';
import type { ReactNode } from 'react';
import { buttonStyle } from '../../../ui/button-style.ts';
import { Button } from '../../../ui/button.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { CallFacts } from '../calls/call-facts.tsx';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import { useObjectUrl } from '../parts/object-url.ts';
import type { ImageRun, MadeImage } from './use-images.ts';

/** The images that this page has made, newest first. */
export function ImageGallery({
  runs,
  onEdit,
  onAgain,
}: {
  readonly runs: readonly ImageRun[];
  readonly onEdit: (image: MadeImage) => void;
  readonly onAgain: () => void;
}): ReactNode {
  if (runs.length === 0)
    return (
      <div className="rounded-xl border border-dashed border-line">
        <Empty
          heading="h2"
          title="Your images appear here."
          text="They stay on this page until you leave it. The gateway does not keep them."
        />
      </div>
    );
  return (
    <ol className="grid min-w-0 gap-8">
      {runs.map((run, index) => (
        <li key={run.id} className="grid min-w-0 gap-3" aria-busy={run.running}>
          <p className="line-clamp-3 break-words">
            {run.ask.images.length > 0 && <span className="text-soft">Edit: </span>}
            {run.ask.prompt}
          </p>
          {run.fault === null && (
            <div className={`grid gap-3 ${run.ask.n > 1 ? 'sm:grid-cols-2' : ''}`}>
              {run.running
                ? Array.from({ length: run.ask.n }, (_, at) => (
                    <Skeleton key={at} className="aspect-square max-h-96 w-full" />
                  ))
                : run.images.map((image, at) => (
                    <ImageTile key={at} image={image} prompt={run.ask.prompt} onEdit={() => onEdit(image)} />
                  ))}
            </div>
          )}
          {run.running && (
            <p role="status" className="sr-only">
              The images are being made.
            </p>
          )}
          {run.fault !== null && <CallFaultNote fault={run.fault} onAgain={index === 0 ? onAgain : undefined} />}
          {run.fault === null && (
            <CallFacts
              callId={run.callId}
              running={run.running}
              cost={run.cost}
              provider={run.provider}
              ms={run.endedAt === null ? null : run.endedAt - run.startedAt}
            />
          )}
        </li>
      ))}
    </ol>
  );
}

function ImageTile({
  image,
  prompt,
  onEdit,
}: {
  readonly image: MadeImage;
  readonly prompt: string;
  readonly onEdit: () => void;
}): ReactNode {
  const { dataUrl, width, height, format } = image;
  const comma = dataUrl.indexOf(',');
  const url = useObjectUrl(dataUrl.slice(comma + 1), dataUrl.slice(5, dataUrl.indexOf(';')));
  return (
    <figure className="m-0 min-w-0 overflow-hidden rounded-xl border border-line bg-card">
      {url !== null && (
        <img
          src={url}
          width={width}
          height={height}
          alt={prompt.slice(0, 200)}
          className="h-auto max-h-[36rem] w-full bg-sunk object-contain"
        />
      )}
      <figcaption className="flex flex-wrap items-center gap-1 px-3 py-2 text-sm text-soft">
        <span className="figures mr-auto">
          {width} × {height} · {format}
        </span>
        <Button size="small" tone="quiet" onClick={onEdit}>
          <Pencil size={14} aria-hidden /> Edit
        </Button>
        {url !== null && (
          <a href={url} download={`${nameOf(prompt)}.${format}`} className={buttonStyle('quiet', 'small')}>
            <Download size={15} aria-hidden /> Save
          </a>
        )}
      </figcaption>
    </figure>
  );
}

const nameOf = (prompt: string): string =>
  prompt
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 60) || 'image';
