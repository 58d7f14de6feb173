import { useMemo, useRef, useState, type ReactNode } from 'react';
import { Button } from '../../../ui/button.tsx';
import { Choice } from '../../../ui/choice.tsx';
import { TextArea } from '../../../ui/field.tsx';
import { SignInToRun, useSignedIn } from '../account-state.tsx';
import { type Draft, draftOf, type Faults, readDraft } from './schema/draft.ts';
import { Members } from './schema/schema-field.tsx';
import { shapeOfArguments } from './schema/shape.ts';
import type { Values } from './use-tool-run.ts';

type Mode = 'form' | 'json';
const NO_FAULTS: Faults = new Map();

/** The arguments of a tool, as form fields or as JSON. */
export function ToolForm({
  schema,
  price,
  busy,
  onRun,
  onStop,
}: {
  readonly schema: unknown;
  readonly price: string;
  readonly busy: boolean;
  readonly onRun: (values: Values) => void;
  readonly onStop: () => void;
}): ReactNode {
  const signedIn = useSignedIn();
  const shape = useMemo(() => shapeOfArguments(schema), [schema]);
  const [mode, setMode] = useState<Mode>(shape === null ? 'json' : 'form');
  const [draft, setDraft] = useState<Draft>(() => (shape === null ? {} : draftOf(shape)));
  const [json, setJson] = useState('{}');
  const [faults, setFaults] = useState<Faults>(NO_FAULTS);
  const form = useRef<HTMLFormElement>(null);

  /** Returns the arguments. Returns null and shows the errors if something is wrong. */
  const read = (): Values | null => {
    const found = new Map<string, string>();
    const value =
      mode === 'form' && shape !== null
        ? readDraft(shape, draft, { required: true, path: '' }, found)
        : readJson(json, found);
    setFaults(found);
    if (found.size === 0) return value as Values;
    // Waits until the errors are rendered, then focuses the first one.
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus());
    return null;
  };
  const change = (next: Mode) => {
    setFaults(NO_FAULTS);
    if (next === 'json' && shape !== null)
      setJson(JSON.stringify(readDraft(shape, draft, { required: true, path: '' }, new Map()), null, 2));
    if (next === 'form' && shape !== null) {
      const value = readJson(json, new Map());
      if (value !== undefined) setDraft(draftOf(shape, value));
    }
    setMode(next);
  };
  return (
    <form
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        const values = busy || !signedIn ? null : read();
        if (values !== null) onRun(values);
      }}
    >
      {shape === null ? (
        <p className="mb-4 text-sm text-soft">
          {schema === undefined
            ? 'The tool does not say which arguments it takes.'
            : 'A form cannot show the schema of this tool.'}{' '}
          Write its arguments as JSON.
        </p>
      ) : (
        shape.members.length > 0 && (
          <div className="mb-5 flex justify-end">
            <Choice
              label="Arguments as"
              options={[
                { value: 'form', text: 'Form' },
                { value: 'json', text: 'JSON' },
              ]}
              chosen={mode}
              onChoose={change}
            />
          </div>
        )
      )}
      {mode === 'form' && shape !== null ? (
        shape.members.length === 0 ? (
          <p className="text-soft">It takes no arguments.</p>
        ) : (
          <Members
            members={shape.members}
            draft={draft as Readonly<Record<string, Draft>>}
            path=""
            faults={faults}
            onChange={setDraft}
          />
        )
      ) : (
        <TextArea
          label="Arguments, as JSON"
          rows={8}
          spellCheck={false}
          value={json}
          error={faults.get('') ?? null}
          onChange={(event) => setJson(event.target.value)}
        />
      )}
      <div className="mt-6 flex flex-wrap items-center gap-3">
        {!signedIn ? (
          <SignInToRun what="to run it" />
        ) : busy ? (
          <Button onClick={onStop}>Stop</Button>
        ) : (
          <Button tone="primary" type="submit" className="figures">
            Run – {price}
          </Button>
        )}
        {faults.size > 0 && (
          <p role="alert" className="text-sm text-bad">
            {faults.size === 1 ? 'One field is not right.' : `${faults.size} fields are not right.`}
          </p>
        )}
      </div>
    </form>
  );
}

function readJson(text: string, faults: Map<string, string>): unknown {
  try {
    const value = JSON.parse(text.trim() === '' ? '{}' : text) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
    faults.set('', 'The arguments are one object: {"name": "value"}.');
  } catch (error) {
    faults.set('', `This is not JSON: ${(error as Error).message}`);
  }
  return undefined;
}
