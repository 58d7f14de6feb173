import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { signInOperator } from '../../api/operator.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Fold } from '../../ui/fold.tsx';
import { Field } from '../../ui/field.tsx';

/** A form that signs in an operator with the admin key. */
export function OperatorForm({
  open = false,
  onDone,
}: {
  readonly open?: boolean;
  /** By default the operator's pages are opened. */
  readonly onDone?: () => void;
}): ReactNode {
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<unknown>(null);
  const [, navigate] = useLocation();
  const submit = async (event: SyntheticEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailed(null);
    try {
      await signInOperator(key.trim());
      if (onDone) onDone();
      else navigate('/admin');
    } catch (error) {
      setFailed(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="rounded-xl border border-line bg-card px-5 py-3.5">
      <Fold name="I operate this gateway" open={open}>
        <form onSubmit={(event) => void submit(event)} className="mt-4 grid gap-4 pb-1.5">
          <Field
            label="Admin key"
            hint="It opens the pages of the operator for an hour, to read. Changes ask for the key again."
            type="password"
            name="admin-key"
            autoComplete="off"
            spellCheck={false}
            placeholder="svc-admin-…"
            required
            value={key}
            onChange={({ target }) => setKey(target.value)}
          />
          {failed !== null && <ErrorNote error={failed} />}
          <Button type="submit" busy={busy} className="justify-self-start">
            Sign in as the operator
          </Button>
        </form>
      </Fold>
    </div>
  );
}
