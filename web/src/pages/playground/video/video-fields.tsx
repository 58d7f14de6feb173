import { ImagePlus, X } from 'lucide-react';
import { useRef, useState, type ReactNode } from 'react';
import { Button } from '../../../ui/button.tsx';
import { Choice } from '../../../ui/choice.tsx';
import { Checkbox, Field, Select, TextArea } from '../../../ui/field.tsx';
import type { VideoFacts } from '../catalogue.ts';
import { faultOfSeed } from '../image/image-ask.ts';
import { PICTURE_TYPES, readPictures } from '../chat/attachments.ts';
import { durationsOf, type VideoAsk } from './video-ask.ts';

const RATIOS = ['16:9', '9:16', '1:1'] as const;
const COUNTS = ['1', '2', '3', '4'] as const;
const option = (value: string) => ({ value, text: value });

/** The form fields of a video request that the model supports. */
export function VideoFields({
  facts,
  ask,
  onChange,
}: {
  readonly facts: VideoFacts;
  readonly ask: VideoAsk;
  readonly onChange: (ask: VideoAsk) => void;
}): ReactNode {
  const set = (change: Partial<VideoAsk>) => onChange({ ...ask, ...change });
  const ratios = facts.aspectRatios.length > 0 ? facts.aspectRatios : RATIOS;
  return (
    <div className="grid gap-4">
      <TextArea
        label="Prompt"
        rows={4}
        value={ask.prompt}
        placeholder="A tollgate in the morning"
        onChange={(event) => set({ prompt: event.target.value })}
      />
      {facts.takes.has('image_url') && <FirstFrame frame={ask.frame} onChange={(frame) => set({ frame })} />}
      <div className="grid grid-cols-2 gap-4">
        <Select
          label="Length"
          value={ask.duration}
          options={durationsOf(facts).map(option)}
          onChange={(event) => set({ duration: event.target.value })}
        />
        {facts.resolutions.length > 0 && (
          <Select
            label="Resolution"
            value={ask.resolution}
            options={facts.resolutions.map(option)}
            onChange={(event) => set({ resolution: event.target.value })}
          />
        )}
        <Select
          label="Shape"
          value={ask.ratio}
          options={ratios.map(option)}
          onChange={(event) => set({ ratio: event.target.value })}
        />
        {facts.takes.has('seed') && (
          <Field
            label="Seed"
            inputMode="numeric"
            placeholder="a new one"
            value={ask.seed}
            error={faultOfSeed(ask.seed)}
            onChange={(event) => set({ seed: event.target.value })}
          />
        )}
      </div>
      {facts.takes.has('negative_prompt') && (
        <Field
          label="What it must not show"
          value={ask.negative}
          onChange={(event) => set({ negative: event.target.value })}
        />
      )}
      {facts.takes.has('generate_audio') && (
        <Checkbox label="With sound" checked={ask.sound} onChange={(event) => set({ sound: event.target.checked })} />
      )}
      <div className="flex items-center justify-between gap-3">
        <span className="text-sm font-medium">Videos</span>
        <Choice
          label="Videos"
          options={COUNTS.map(option)}
          chosen={String(ask.n)}
          onChoose={(n) => set({ n: Number(n) })}
        />
      </div>
    </div>
  );
}

function FirstFrame({
  frame,
  onChange,
}: {
  readonly frame: string | null;
  readonly onChange: (frame: string | null) => void;
}): ReactNode {
  const files = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState<string | null>(null);
  const choose = async (given: FileList | null) => {
    try {
      onChange((await readPictures([...(given ?? [])].slice(0, 1)))[0] ?? null);
      setFault(null);
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  return (
    <div className="flex flex-wrap items-center gap-3">
      <input
        ref={files}
        type="file"
        accept={PICTURE_TYPES}
        hidden
        aria-label="First frame"
        onChange={(event) => {
          void choose(event.target.files);
          event.target.value = '';
        }}
      />
      {frame !== null && <img src={frame} alt="First frame" className="h-16 rounded-lg border border-line" />}
      <Button size="small" onClick={() => files.current?.click()}>
        <ImagePlus size={15} aria-hidden /> {frame === null ? 'Begin with an image' : 'Another image'}
      </Button>
      {frame !== null && (
        <Button size="small" tone="quiet" onClick={() => onChange(null)}>
          <X size={14} aria-hidden /> Without
        </Button>
      )}
      {fault !== null && (
        <p role="alert" className="text-sm text-bad">
          {fault}
        </p>
      )}
    </div>
  );
}
