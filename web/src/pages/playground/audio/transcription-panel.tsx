import { Code, FileAudio } from 'lucide-react';
import { useRef, useState, type ReactNode } from 'react';
import type { Schemas } from '../../../api/client.ts';
import { BOOT } from '../../../app/boot.ts';
import { openaiJs } from '../../../code/openai.ts';
import { jsonText } from '../../../code/snippet.ts';
import { Button } from '../../../ui/button.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { Field } from '../../../ui/field.tsx';
import { SignInToRun, useSignedIn } from '../account-state.tsx';
import { BarActions } from '../bar-actions.tsx';
import { CallFacts } from '../calls/call-facts.tsx';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import type { Service } from '../catalogue.ts';
import { MostCost } from '../most-cost.tsx';
import { CodeDialog } from '../code/code-dialog.tsx';
import { useBlobUrl } from '../parts/object-url.ts';
import { useAudioCall } from './use-audio-call.ts';

const PATH = '/api/v1/audio/transcriptions';
const TYPES = 'audio/*,video/mp4,video/webm,.mp3,.m4a,.wav,.ogg,.opus,.flac,.webm';

/** The panel that writes down what is said in a file. */
export default function TranscriptionPanel({ service }: { readonly service: Service }): ReactNode {
  const signedIn = useSignedIn();
  const [file, setFile] = useState<File | null>(null);
  /** The length of the file; null until the browser has read it. */
  const [seconds, setSeconds] = useState<number | null>(null);
  const [language, setLanguage] = useState('');
  const [code, setCode] = useState(false);
  const { busy, answer, fault, run } = useAudioCall(async (reply) => (await reply.json()) as Schemas['Transcript']);
  const words = { model: service.name, ...(language.trim() === '' ? {} : { language: language.trim() }) };
  const transcribe = () => {
    if (file === null) return;
    const form = new FormData();
    for (const [name, value] of Object.entries(words)) form.append(name, value);
    form.append('file', file);
    void run(new Request(PATH, { method: 'POST', body: form }));
  };
  const cost = answer?.made.usage?.cost ?? null;
  return (
    <div className="mx-auto grid max-w-[50rem] gap-5">
      <BarActions>
        <Button onClick={() => setCode(true)}>
          <Code size={15} aria-hidden /> <span className="max-sm:sr-only">Show code</span>
        </Button>
      </BarActions>
      <form
        className="grid gap-4 rounded-xl border border-line bg-card p-4 sm:p-5"
        onSubmit={(event) => {
          event.preventDefault();
          transcribe();
        }}
      >
        <SoundFile
          file={file}
          onChange={(next) => {
            setFile(next);
            setSeconds(null);
          }}
          onLength={setSeconds}
        />
        <Field
          label="Language"
          hint="Such as en. Without it, the model listens for it."
          value={language}
          maxLength={32}
          onChange={(event) => setLanguage(event.target.value)}
        />
        <div className="flex flex-wrap items-center gap-3">
          {signedIn ? (
            <Button tone="primary" type="submit" busy={busy} disabled={file === null}>
              Transcribe
            </Button>
          ) : (
            <SignInToRun what="to run it" />
          )}
          <span className="figures text-sm text-soft">
            <MostCost body={seconds === null ? null : { primitive: 'model', model: service.name, seconds }} />
          </span>
        </div>
      </form>
      {fault !== null && <CallFaultNote fault={fault} onAgain={transcribe} />}
      {answer !== null && (
        <>
          <section className="rounded-xl border border-line bg-card p-4 sm:p-5">
            <div className="mb-2 flex items-center justify-between gap-3">
              <h2 className="text-base">Transcript</h2>
              <Copy text={answer.made.text} label="Copy the transcript" />
            </div>
            <p className="break-words whitespace-pre-wrap">
              {answer.made.text === '' ? 'The model heard no words.' : answer.made.text}
            </p>
          </section>
          <CallFacts
            key={answer.callId}
            callId={answer.callId}
            running={false}
            cost={cost}
            provider={answer.provider}
            ms={answer.ms}
          />
        </>
      )}
      <CodeDialog open={code} onClose={() => setCode(false)} samples={() => samplesOf(words)} />
    </div>
  );
}

/** Chooses a file, and plays it. */
function SoundFile({
  file,
  onChange,
  onLength,
}: {
  readonly file: File | null;
  readonly onChange: (file: File | null) => void;
  readonly onLength: (seconds: number | null) => void;
}): ReactNode {
  const input = useRef<HTMLInputElement>(null);
  const url = useBlobUrl(file);
  return (
    <div className="grid gap-3">
      <input
        ref={input}
        type="file"
        accept={TYPES}
        hidden
        aria-label="Sound to transcribe"
        onChange={(event) => {
          onChange(event.target.files?.[0] ?? file);
          event.target.value = '';
        }}
      />
      <div className="flex flex-wrap items-center gap-3">
        <Button onClick={() => input.current?.click()}>
          <FileAudio size={15} aria-hidden /> {file === null ? 'Choose a file' : 'Choose another file'}
        </Button>
        <span className="min-w-0 break-words text-sm text-soft">
          {file === null ? 'mp3, wav, m4a, ogg, flac or webm' : file.name}
        </span>
      </div>
      {url !== null && (
        // oxlint-disable-next-line jsx-a11y/media-has-caption -- its words are what is asked for
        <audio
          controls
          src={url}
          onLoadedMetadata={({ currentTarget: { duration } }) => onLength(Number.isFinite(duration) ? duration : null)}
          className="w-full"
        />
      )}
    </div>
  );
}

const samplesOf = (words: Readonly<Record<string, string>>) => {
  const fields = Object.entries(words).map(
    ([name, value]) => `  -F '${name}=${value.replaceAll("'", String.raw`'\''`)}'`,
  );
  return [
    {
      id: 'curl',
      name: 'curl',
      code: [
        `curl ${BOOT.base_url}${PATH}`,
        '  -H "Authorization: Bearer $KEY"',
        ...fields,
        '  -F file=@speech.mp3',
      ].join(' \\\n'),
    },
    {
      id: 'openai',
      name: 'openai',
      code: `import { createReadStream } from 'node:fs';\n${openaiJs(
        BOOT.base_url,
        `const file = createReadStream('speech.mp3');\nconst { text } = await client.audio.transcriptions.create({ file, ...${jsonText(words)} });`,
      )}`,
    },
  ];
};
