import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { Button } from '../../ui/button.tsx';
import { Field } from '../../ui/field.tsx';

/** Signs in with an API key, and an operator who took this form with the admin key. */
export function KeyForm({ busy, onKey }: { readonly busy: boolean; readonly onKey: (key: string) => void }): ReactNode {
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | null>(null);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const text = key.trim();
    if (!/^svc-(?:sk|admin)-/.test(text)) return setError('An API key begins with svc-sk-.');
    setError(null);
    onKey(text);
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <Field
        label="API key"
        hint="The session may do what the key may. It ends with the key."
        type="password"
        name="api-key"
        autoComplete="off"
        spellCheck={false}
        placeholder="svc-sk-…"
        value={key}
        error={error}
        onChange={({ target }) => setKey(target.value)}
      />
      <Button type="submit" busy={busy} className="justify-self-start">
        Sign in with the key
      </Button>
    </form>
  );
}
