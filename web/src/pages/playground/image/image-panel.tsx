import { useQueryClient } from '@tanstack/react-query';
import { Code } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { Button } from '../../../ui/button.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { SignInToRun, useSignedIn } from '../account-state.tsx';
import { faultOf } from '../calls/answer.ts';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import { BarActions } from '../bar-actions.tsx';
import type { Service } from '../catalogue.ts';
import { CodeDialog } from '../code/code-dialog.tsx';
import { codeOfImage } from '../code/code-of-media.ts';
import { faultOfSeed, type ImageAsk, NO_ASK } from './image-ask.ts';
import { ImageFields } from './image-fields.tsx';
import { ImageGallery } from './image-gallery.tsx';
import { useImages } from './use-images.ts';
import { useQuote } from './use-quote.ts';

/** The panel that makes and edits images. The button shows the price, and exactly this price is charged. */
export default function ImagePanel({ service }: { readonly service: Service }): ReactNode {
  const queries = useQueryClient();
  const signedIn = useSignedIn();
  const [ask, setAsk] = useState<ImageAsk>(NO_ASK);
  const [code, setCode] = useState(false);
  const quote = useQuote(service.name, ask);
  const { runs, make } = useImages(service.name);
  const current = quote.isPlaceholderData ? undefined : quote.data;
  const ready = ask.prompt.trim() !== '' && faultOfSeed(ask.seed) === null && current?.valid === true;
  const busy = runs[0]?.running ?? false;

  const generate = () => {
    if (!ready || busy) return;
    void make(ask, current.quote_id ?? null);
    // A quote is valid for one call only.
    void queries.resetQueries({ queryKey: quote.key });
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
          generate();
        }}
      >
        <ImageFields facts={service.image!} ask={ask} onChange={setAsk} />
        <div className="mt-5 grid gap-3">
          {!signedIn ? (
            <SignInToRun what="to generate" />
          ) : (
            <Button tone="primary" type="submit" disabled={!ready} busy={busy} className="figures">
              {ask.images.length > 0 ? 'Edit' : 'Generate'}
              {current?.valid === true && ` – ${formatUsd(current.price_usd)}`}
            </Button>
          )}
          {current?.valid === false && <p className="text-sm text-bad">{current.message}</p>}
          {quote.error !== null && <CallFaultNote fault={faultOf(quote.error)} onAgain={() => void quote.refetch()} />}
        </div>
      </form>
      <ImageGallery
        runs={runs}
        onEdit={({ dataUrl }) => setAsk({ ...ask, images: [...ask.images, dataUrl].slice(-4) })}
        onAgain={generate}
      />
      <CodeDialog open={code} onClose={() => setCode(false)} samples={() => codeOfImage(service.name, ask)} />
    </div>
  );
}
