import { Code, Download } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { BOOT } from '../../../app/boot.ts';
import { openaiJs } from '../../../code/openai.ts';
import { jsonText } from '../../../code/snippet.ts';
import { Button } from '../../../ui/button.tsx';
import { buttonStyle } from '../../../ui/button-style.ts';
import { Field, Select, TextArea } from '../../../ui/field.tsx';
import { SignInToRun, useSignedIn } from '../account-state.tsx';
import { BarActions } from '../bar-actions.tsx';
import { CallFacts } from '../calls/call-facts.tsx';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import type { Service } from '../catalogue.ts';
import { MostCost } from '../most-cost.tsx';
import { asCurl, asSent } from '../code/as-sent.ts';
import { CodeDialog } from '../code/code-dialog.tsx';
import { useBlobUrl } from '../parts/object-url.ts';
import { useAudioCall } from './use-audio-call.ts';

const PATH = '/api/v1/audio/speech';
const EXAMPLE = 'The gate is open.';
/** Formats that browsers play, the one that most models have first. */
const FORMATS = ['wav', 'mp3', 'opus', 'aac', 'flac'].map((value) => ({ value, text: value }));

/** The panel that speaks a text. */
export default function SpeechPanel({ service }: { readonly service: Service }): ReactNode {
  const signedIn = useSignedIn();
  const [text, setText] = useState('');
  const [voice, setVoice] = useState('alloy');
  const [format, setFormat] = useState('wav');
  const [code, setCode] = useState(false);
  const { busy, answer, fault, run } = useAudioCall(async (reply) => ({
    sound: await reply.blob(),
    ending: format === 'opus' ? 'ogg' : format,
  }));
  const body = {
    model: service.name,
    input: text.trim() === '' ? EXAMPLE : text,
    voice: voice.trim(),
    response_format: format,
  };
  const ready = text.trim() !== '' && voice.trim() !== '';
  const speak = () => {
    if (!ready) return;
    void run(
      new Request(PATH, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  };
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
          speak();
        }}
      >
        <TextArea
          label="Text"
          hint="The model reads it aloud."
          placeholder={EXAMPLE}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <Field
            label="Voice"
            hint="Each provider has its own voices."
            value={voice}
            maxLength={256}
            onChange={(event) => setVoice(event.target.value)}
          />
          <Select
            label="Format"
            hint="Not every model has all of them."
            options={FORMATS}
            value={format}
            onChange={(event) => setFormat(event.target.value)}
          />
        </div>
        <div className="flex flex-wrap items-center gap-3">
          {signedIn ? (
            <Button tone="primary" type="submit" busy={busy} disabled={!ready}>
              Speak
            </Button>
          ) : (
            <SignInToRun what="to run it" />
          )}
          <span className="figures text-sm text-soft">
            <MostCost body={ready ? { primitive: 'model', ...body } : null} />
          </span>
        </div>
      </form>
      {fault !== null && <CallFaultNote fault={fault} onAgain={speak} />}
      {answer !== null && (
        <>
          <Sound {...answer.made} />
          <CallFacts
            key={answer.callId}
            callId={answer.callId}
            running={false}
            cost={null}
            provider={answer.provider}
            ms={answer.ms}
          />
        </>
      )}
      <CodeDialog
        open={code}
        onClose={() => setCode(false)}
        samples={() => [
          asCurl(PATH, body, [`-o speech.${format}`]),
          {
            id: 'openai',
            name: 'openai',
            code: openaiJs(
              BOOT.base_url,
              `const speech = await client.audio.speech.create(${jsonText(body)});\nconst bytes = Buffer.from(await speech.arrayBuffer());`,
            ),
          },
          asSent(PATH, body),
        ]}
      />
    </div>
  );
}

/** The sound with its player, and a link to its file. */
function Sound({ sound, ending }: { readonly sound: Blob; readonly ending: string }): ReactNode {
  const url = useBlobUrl(sound);
  if (url === null) return null;
  return (
    <section className="grid gap-3 rounded-xl border border-line bg-card p-4 sm:p-5">
      <h2 className="text-base">Speech</h2>
      {/* oxlint-disable-next-line jsx-a11y/media-has-caption -- the text above is what is spoken */}
      <audio controls src={url} className="w-full" />
      <div>
        <a href={url} download={`speech.${ending}`} className={buttonStyle()}>
          <Download size={15} aria-hidden /> Save
        </a>
      </div>
    </section>
  );
}
