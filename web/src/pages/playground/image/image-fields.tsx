import { ImagePlus, X } from 'lucide-react';
import { useRef, useState, type ReactNode } from 'react';
import { Choice } from '../../../ui/choice.tsx';
import { Button } from '../../../ui/button.tsx';
import { Field, Select, TextArea } from '../../../ui/field.tsx';
import type { ImageFacts } from '../catalogue.ts';
import { PICTURE_TYPES, readPictures } from '../chat/attachments.ts';
import { faultOfSeed, type ImageAsk, RATIOS, takes } from './image-ask.ts';

const COUNTS = ['1', '2', '3', '4'] as const;
const option = (value: string) => ({ value, text: value });

/** The form fields of an image request that the model supports. */
export function ImageFields({
  facts,
  ask,
  onChange,
}: {
  readonly facts: ImageFacts;
  readonly ask: ImageAsk;
  readonly onChange: (ask: ImageAsk) => void;
}): ReactNode {
  const set = (change: Partial<ImageAsk>) => onChange({ ...ask, ...change });
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
      <Inputs images={ask.images} onChange={(images) => set({ images })} />
      <div className="grid grid-cols-2 gap-4">
        {facts.tiers.length > 1 && (
          <Select
            label="Size"
            value={ask.tier}
            options={[{ value: '', text: 'Default' }, ...facts.tiers.map(option)]}
            onChange={(event) => set({ tier: event.target.value })}
          />
        )}
        <Select
          label="Shape"
          value={ask.ratio}
          options={[{ value: '', text: 'Default' }, ...ratios.map(option)]}
          onChange={(event) => set({ ratio: event.target.value })}
        />
        {(facts.qualities.length > 0 || takes(facts, 'quality')) && (
          <Select
            label="Quality"
            value={ask.quality}
            options={[
              { value: '', text: 'Default' },
              ...(facts.qualities.length > 0 ? facts.qualities : ['low', 'medium', 'high']).map(option),
            ]}
            onChange={(event) => set({ quality: event.target.value })}
          />
        )}
        {facts.formats.length > 1 && (
          <Select
            label="Format"
            value={ask.format}
            options={[{ value: '', text: 'Default' }, ...facts.formats.map(option)]}
            onChange={(event) => set({ format: event.target.value })}
          />
        )}
        {takes(facts, 'seed') && (
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
      {takes(facts, 'negative_prompt') && (
        <Field
          label="What it must not show"
          value={ask.negative}
          onChange={(event) => set({ negative: event.target.value })}
        />
      )}
      <div className="flex items-center justify-between gap-3">
        <span className="text-sm font-medium">Images</span>
        <Choice
          label="Images"
          options={COUNTS.map(option)}
          chosen={String(ask.n)}
          onChoose={(n) => set({ n: Number(n) })}
        />
      </div>
    </div>
  );
}

/** The images to edit. */
function Inputs({
  images,
  onChange,
}: {
  readonly images: readonly string[];
  readonly onChange: (images: readonly string[]) => void;
}): ReactNode {
  const files = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState<string | null>(null);
  const add = async (given: FileList | null) => {
    try {
      onChange(await readPictures([...(given ?? [])], images));
      setFault(null);
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  return (
    <div>
      <input
        ref={files}
        type="file"
        accept={PICTURE_TYPES}
        multiple
        hidden
        aria-label="Images to edit"
        onChange={(event) => {
          void add(event.target.files);
          event.target.value = '';
        }}
      />
      {images.length > 0 && (
        <ul className="mb-3 flex flex-wrap gap-2">
          {images.map((url, index) => (
            <li key={index} className="relative">
              <img
                src={url}
                alt={`To edit, ${index + 1}`}
                className="size-20 rounded-lg border border-line object-cover"
              />
              <button
                type="button"
                aria-label={`Take image ${index + 1} away`}
                onClick={() => onChange(images.filter((_, each) => each !== index))}
                className="absolute -right-1.5 -top-1.5 grid size-6 place-items-center rounded-full border border-line bg-card"
              >
                <X size={13} aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
      <Button size="small" onClick={() => files.current?.click()}>
        <ImagePlus size={15} aria-hidden /> {images.length === 0 ? 'Edit an image' : 'Add another'}
      </Button>
      {fault !== null && (
        <p role="alert" className="mt-2 text-sm text-bad">
          {fault}
        </p>
      )}
    </div>
  );
}
