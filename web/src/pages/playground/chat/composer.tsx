import { ArrowUp, ImagePlus, Square, X } from 'lucide-react';
import { useRef, useState, type ReactNode } from 'react';
import { Button } from '../../../ui/button.tsx';
import { SignInToRun, useSignedIn } from '../account-state.tsx';
import { exactUsd } from '../../../ui/exact-usd.ts';
import { PICTURE_TYPES, readPictures } from './attachments.ts';
import type { Said } from './turn.ts';

/** On a phone the keyboard would cover the suggestions. */
const focusAtDesk = (box: HTMLTextAreaElement | null): void => {
  if (matchMedia('(pointer: fine)').matches) box?.focus({ preventScroll: true });
};

/** The text field for a message. Enter sends it, Shift+Enter starts a new line. */
export function Composer({
  to,
  busy,
  ready,
  pictures,
  spent,
  most,
  stopWord,
  whatStopDoes,
  onSay,
  onStop,
}: {
  /** The name of the model or the agent. */
  readonly to: string;
  readonly busy: boolean;
  /** Whether the settings are valid. */
  readonly ready: boolean;
  /** Whether it accepts pictures. */
  readonly pictures: boolean;
  /** USD for the conversation so far. */
  readonly spent: number;
  /** Shows what a message would cost at most. null: nothing is written yet. */
  readonly most: (said: Said | null) => ReactNode;
  readonly stopWord: 'Stop' | 'Cancel';
  /** Shown while an answer comes. */
  readonly whatStopDoes: string;
  readonly onSay: (said: Said) => void;
  readonly onStop: () => void;
}): ReactNode {
  const signedIn = useSignedIn();
  const [text, setText] = useState('');
  const [images, setImages] = useState<readonly string[]>([]);
  const [fault, setFault] = useState<string | null>(null);
  const can = signedIn && ready && !busy && (text.trim() !== '' || images.length > 0);

  const add = async (given: Iterable<File>) => {
    try {
      setImages(await readPictures(given, images));
      setFault(null);
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  const send = () => {
    if (!can) return;
    onSay({ text: text.trim(), images });
    setText('');
    setImages([]);
    setFault(null);
  };
  return (
    <div
      className="rounded-2xl border border-edge bg-card p-2 shadow-lg shadow-ink/5 focus-within:border-accent"
      onDragOver={(event) => pictures && event.preventDefault()}
      onDrop={(event) => {
        if (!pictures) return;
        event.preventDefault();
        void add(event.dataTransfer.files);
      }}
    >
      <Attached images={images} onChange={setImages} />
      {fault !== null && (
        <p role="alert" className="px-2 pb-1 text-sm text-bad">
          {fault}
        </p>
      )}
      <textarea
        rows={2}
        ref={focusAtDesk}
        aria-label={`Message to ${to}`}
        placeholder={`Message ${to}`}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onPaste={(event) => {
          if (!pictures || event.clipboardData.files.length === 0) return;
          event.preventDefault();
          void add(event.clipboardData.files);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
        className="field-sizing-content block max-h-60 min-h-9 w-full resize-none bg-transparent px-2 py-1.5 text-base outline-none placeholder:text-soft"
      />
      <div className="flex items-center gap-2 pt-1">
        {pictures && <AttachButton onFiles={(files) => void add(files)} />}
        <span className="figures min-w-0 grow pl-1.5 text-sm text-soft">
          {busy ? whatStopDoes : most(can ? { text: text.trim(), images } : null)}
          {spent > 0 && (
            <>
              {' '}
              <span className="whitespace-nowrap">This conversation: {exactUsd(spent)}</span>
            </>
          )}
        </span>
        {!signedIn ? (
          <SignInToRun what="to send" />
        ) : busy ? (
          <Button onClick={onStop}>
            <Square size={13} aria-hidden fill="currentColor" /> {stopWord}
          </Button>
        ) : (
          <Button tone="primary" disabled={!can} onClick={send}>
            <ArrowUp size={16} aria-hidden /> Send
          </Button>
        )}
      </div>
    </div>
  );
}

/** The pictures that go with the message. */
function Attached({
  images,
  onChange,
}: {
  readonly images: readonly string[];
  readonly onChange: (images: readonly string[]) => void;
}): ReactNode {
  if (images.length === 0) return null;
  return (
    <ul className="flex flex-wrap gap-2 px-1.5 pb-2 pt-1.5">
      {images.map((url, index) => (
        <li key={index} className="relative">
          <img src={url} alt={`Attached, ${index + 1}`} className="size-16 rounded-lg object-cover" />
          <button
            type="button"
            aria-label={`Take picture ${index + 1} away`}
            onClick={() => onChange(images.filter((_, each) => each !== index))}
            className="absolute -right-1.5 -top-1.5 grid size-6 place-items-center rounded-full border border-line bg-card"
          >
            <X size={13} aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}

function AttachButton({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }): ReactNode {
  const files = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={files}
        type="file"
        accept={PICTURE_TYPES}
        multiple
        hidden
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = '';
        }}
      />
      <button
        type="button"
        aria-label="Attach pictures"
        title="Attach pictures"
        onClick={() => files.current?.click()}
        className="grid size-9 place-items-center rounded-lg text-soft hover:bg-sunk hover:text-ink"
      >
        <ImagePlus size={18} aria-hidden />
      </button>
    </>
  );
}
