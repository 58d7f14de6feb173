import { useRef, useState, type ReactNode } from 'react';
import { useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field, TextArea } from '../../ui/field.tsx';
import { JsonView } from '../../ui/json-view.tsx';
import { valueOf, type SampleCall } from './samples.ts';
import type { Endpoint, Parameter } from './document.ts';

interface Result {
  readonly status: number;
  readonly ms: number;
  readonly headers: readonly (readonly [string, string])[];
  /** Parsed JSON, or a text. */
  readonly body: unknown;
}

const TEXT_MAX = 200_000;
/** Headers of an answer that name the call, its cost and its provider. */
const SHOWN_HEADERS = ['content-type', 'x-request-id', 'x-generation-id', 'x-cost-usd', 'x-provider', 'retry-after'];

/** A form that calls the endpoint at this gateway. The key stays in the memory of the page. */
export function Trial({
  endpoint,
  parameters,
  call,
  apiKey,
  onKey,
}: {
  readonly endpoint: Endpoint;
  readonly parameters: readonly Parameter[];
  readonly call: SampleCall;
  readonly apiKey: string;
  readonly onKey: (key: string) => void;
}): ReactNode {
  const { session } = useSession();
  const fields = parameters.filter(({ in: place }) => place === 'path' || place === 'query');
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(fields.filter(({ required }) => required).map((each) => [each.name, valueOf(each)])),
  );
  const [body, setBody] = useState(() => (call.json === undefined ? '' : JSON.stringify(call.json, null, 2)));
  const [result, setResult] = useState<Result | Error | null>(null);
  const [busy, setBusy] = useState(false);
  const abort = useRef<AbortController>(null);
  const send = async () => {
    abort.current = new AbortController();
    setBusy(true);
    setResult(null);
    try {
      setResult(await sendCall(endpoint, fields, values, body, apiKey.trim(), abort.current.signal));
    } catch {
      setResult(abort.current.signal.aborted ? new Error('Stopped.') : new Error('The gateway does not answer.'));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className="grid gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {call.secret !== null && (
        <Field
          label={call.secret === 'ADMIN_KEY' ? 'Admin key' : 'API key'}
          type="password"
          autoComplete="off"
          hint={
            session === null
              ? 'Stays on this page, and is forgotten when you leave it.'
              : 'You are signed in: without a key the call is made for your account.'
          }
          value={apiKey}
          onChange={(event) => onKey(event.target.value)}
        />
      )}
      {fields.map(({ name, required }) => (
        <Field
          key={name}
          label={name}
          required={required ?? false}
          value={values[name] ?? ''}
          onChange={(event) => setValues({ ...values, [name]: event.target.value })}
        />
      ))}
      {call.json !== undefined && (
        <TextArea
          label="Body"
          rows={Math.min(16, body.split('\n').length + 1)}
          spellCheck={false}
          value={body}
          onChange={(event) => setBody(event.target.value)}
        />
      )}
      <div className="flex flex-wrap items-center gap-3">
        <Button type="submit" tone="primary" busy={busy}>
          Send
        </Button>
        {busy && <Button onClick={() => abort.current?.abort()}>Stop</Button>}
        {call.secret !== null && endpoint.method !== 'GET' && (
          <span className="text-sm text-soft">It is a real call: it changes and costs what it says.</span>
        )}
      </div>
      <div aria-live="polite">
        {result instanceof Error && <ErrorNote error={result.message} />}
        {result !== null && !(result instanceof Error) && <ResultView result={result} />}
      </div>
    </form>
  );
}

function ResultView({ result: { status, ms, headers, body } }: { readonly result: Result }): ReactNode {
  return (
    <div className="grid gap-2">
      <p className="figures text-sm">
        <b className={status < 400 ? 'text-accent' : 'text-bad'}>{status}</b> after {ms} ms
      </p>
      <dl className="grid gap-x-3 text-xs text-soft sm:grid-cols-[auto_1fr]">
        {headers.map(([name, value]) => (
          <div key={name} className="sm:contents">
            <dt className="font-mono">{name}</dt>
            <dd className="min-w-0 font-mono break-all">{value}</dd>
          </div>
        ))}
      </dl>
      <div
        className="max-h-[28rem] overflow-auto rounded-lg border border-line bg-sunk p-3"
        tabIndex={0}
        role="region"
        aria-label="Answer"
      >
        {typeof body === 'string' ? (
          <pre className="font-mono text-[13px] leading-[21px] whitespace-pre-wrap break-words">{body}</pre>
        ) : (
          <JsonView value={body} />
        )}
      </div>
    </div>
  );
}

async function sendCall(
  { method, path }: Endpoint,
  fields: readonly Parameter[],
  values: Readonly<Record<string, string>>,
  body: string,
  apiKey: string,
  signal: AbortSignal,
): Promise<Result> {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) =>
    // A name keeps its slashes, as in `/models/demo/chat`.
    (values[name] ?? '').split('/').map(encodeURIComponent).join('/'),
  );
  const query = new URLSearchParams(
    fields
      .filter(({ name, in: place }) => place === 'query' && (values[name] ?? '') !== '')
      .map(({ name }) => [name, values[name]!]),
  ).toString();
  const begin = performance.now();
  const answer = await fetch(query === '' ? filled : `${filled}?${query}`, {
    method,
    signal,
    headers: {
      ...(body === '' ? {} : { 'content-type': 'application/json' }),
      ...(apiKey === '' ? { 'x-tollgate-web': '1' } : { authorization: `Bearer ${apiKey}` }),
    },
    ...(apiKey === '' ? {} : { credentials: 'omit' as const }),
    ...(body === '' ? {} : { body }),
  });
  const type = answer.headers.get('content-type') ?? '';
  const bytes = await answer.blob();
  const text = /json|text|javascript|xml/.test(type) ? (await bytes.text()).slice(0, TEXT_MAX) : null;
  return {
    status: answer.status,
    ms: Math.round(performance.now() - begin),
    headers: SHOWN_HEADERS.flatMap((name) => {
      const value = answer.headers.get(name);
      return value === null ? [] : [[name, value] as const];
    }),
    body: text === null ? `${bytes.size} bytes${type === '' ? '' : ` of ${type}`}` : parsed(text),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
