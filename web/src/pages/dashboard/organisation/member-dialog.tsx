import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { api } from '../../../api/client.ts';
import type { Member, Role } from '../../../api/organisation.ts';
import { Button } from '../../../ui/button.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { Field, Select } from '../../../ui/field.tsx';
import { patternsOf, tagsOf, tagsText } from '../keys/key-fields.tsx';
import { ServiceNames } from '../keys/service-names.tsx';
import { useAct } from './act.ts';
import { budgetDraft, BudgetFields, budgetsBody, hasFault } from '../../../account/budget-fields.tsx';

const ROLES: readonly { readonly value: Role; readonly text: string }[] = [
  { value: 'viewer', text: 'Viewer: sees everything' },
  { value: 'member', text: 'Member: also makes keys of their own' },
  { value: 'admin', text: 'Admin: also changes keys, limits and members' },
  { value: 'owner', text: 'Owner: also changes owners, and withdraws' },
];

/** The dialog that adds or changes a member. It is closed while `shown` is null. `role` is the user's role. */
export function MemberDialog({
  shown,
  role,
  onClose,
}: {
  readonly shown: Member | 'new' | null;
  readonly role: Role;
  readonly onClose: () => void;
}): ReactNode {
  return (
    <Dialog
      title={shown === null || shown === 'new' ? 'Add a member' : shown.name}
      open={shown !== null}
      onClose={onClose}
    >
      {shown === 'new' && <NewMember role={role} onDone={onClose} />}
      {shown !== null && shown !== 'new' && <Change of={shown} role={role} onDone={onClose} />}
    </Dialog>
  );
}

interface FormProps {
  readonly role: Role;
  readonly onDone: () => void;
}

/** Only an owner may make somebody an owner. */
const choices = (role: Role) => (role === 'owner' ? ROLES : ROLES.filter(({ value }) => value !== 'owner'));

function NewMember({ role: own, onDone }: FormProps): ReactNode {
  const [account, setAccount] = useState('');
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('member');
  const add = useAct(onDone);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const body = { account: account.trim(), role, ...(name.trim() === '' ? {} : { name: name.trim() }) };
    add.mutate({
      what: `Add ${name.trim() || account.trim()} as ${role}.`,
      send: (headers) => api.POST('/api/v1/members', { body, headers }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-5">
      <Field
        label="Account"
        hint="The account that the member signs in as: a wallet such as eip155:8453:0x… or solana:…, or another account of this gateway."
        required
        spellCheck={false}
        autoComplete="off"
        value={account}
        onChange={({ target }) => setAccount(target.value)}
      />
      <Field label="Name" maxLength={128} value={name} onChange={({ target }) => setName(target.value)} />
      <Select
        label="Role"
        options={choices(own)}
        value={role}
        onChange={({ target }) => setRole(target.value as Role)}
      />
      {add.error !== null && <ErrorNote error={add.error} />}
      <Button type="submit" tone="primary" busy={add.isPending} className="justify-self-end">
        Add the member
      </Button>
    </form>
  );
}

function Change({ of, role: own, onDone }: FormProps & { readonly of: Member }): ReactNode {
  const [name, setName] = useState(of.name);
  const [role, setRole] = useState(of.role);
  const [draft, setDraft] = useState(() => budgetDraft(of.budgets));
  const [askAbove, setAskAbove] = useState(of.ask_above === null ? '' : String(of.ask_above));
  const [services, setServices] = useState((of.allowed_services ?? []).join('\n'));
  const [tags, setTags] = useState(tagsText(of.tags));
  const [sure, setSure] = useState(false);
  const act = useAct(onDone);
  const params = { path: { member: of.account } };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (hasFault(draft)) return;
    const body = {
      ...(name.trim() === of.name ? {} : { name: name.trim() }),
      ...(role === of.role ? {} : { role }),
      ...budgetsBody(draft, of.budgets),
      ...(askAbove === (of.ask_above === null ? '' : String(of.ask_above))
        ? {}
        : { ask_above: askAbove.trim() === '' ? null : Number(askAbove) }),
      ...(tags === tagsText(of.tags) ? {} : { tags: tagsOf(tags) }),
      ...(services === (of.allowed_services ?? []).join('\n') ? {} : { allowed_services: patternsOf(services) }),
    };
    if (Object.keys(body).length === 0) return onDone();
    act.mutate({
      what: `Change the member ${of.name}.`,
      send: (headers) => api.PATCH('/api/v1/members/{member}', { params, body, headers }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-5">
      <Field label="Name" required maxLength={128} value={name} onChange={({ target }) => setName(target.value)} />
      <Select
        label="Role"
        options={of.role === 'owner' ? ROLES : choices(own)}
        disabled={of.role === 'owner' && own !== 'owner'}
        value={role}
        onChange={({ target }) => setRole(target.value as Role)}
      />
      <BudgetFields draft={draft} onChange={setDraft} />
      <Field
        label="Ask a person above, in USD for one call"
        inputMode="decimal"
        placeholder="never"
        value={askAbove}
        onChange={({ target }) => setAskAbove(target.value)}
      />
      <Field
        label="Tags of all calls of their keys"
        placeholder="team=search"
        value={tags}
        onChange={({ target }) => setTags(target.value)}
      />
      <ServiceNames value={services} error={null} onChange={setServices} />
      {act.error !== null && <ErrorNote error={act.error} />}
      {sure ? (
        <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg bg-bad-wash px-4 py-3">
          <p className="text-bad">{of.name} stops acting for the organisation, and their keys stop for ever.</p>
          <div className="flex gap-2">
            <Button size="small" onClick={() => setSure(false)}>
              Keep
            </Button>
            <Button
              size="small"
              tone="danger"
              busy={act.isPending}
              onClick={() =>
                act.mutate({
                  what: `Remove the member ${of.name}.`,
                  send: (headers) => api.DELETE('/api/v1/members/{member}', { params, headers }),
                })
              }
            >
              Remove
            </Button>
          </div>
        </div>
      ) : (
        <div className="flex flex-wrap items-center justify-between gap-3">
          <Button tone="danger" disabled={act.isPending} onClick={() => setSure(true)}>
            Remove
          </Button>
          <Button type="submit" tone="primary" busy={act.isPending}>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}
