import { Plus, X } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from '../../../../ui/button.tsx';
import { Checkbox, Field, Select, TextArea } from '../../../../ui/field.tsx';
import { type Draft, draftOf, type Faults, type OneOfDraft } from './draft.ts';
import type { Member, Shape } from './shape.ts';

interface Props<S extends Shape = Shape> {
  readonly shape: S;
  readonly draft: Draft;
  readonly label: string;
  readonly required: boolean;
  /** The field's path in `faults`, such as `address.city`. */
  readonly path: string;
  readonly faults: Faults;
  readonly onChange: (draft: Draft) => void;
}

/** The fields of a group, without a frame. */
export function Members({
  members,
  draft,
  path,
  faults,
  onChange,
}: {
  readonly members: readonly Member[];
  readonly draft: Readonly<Record<string, Draft>>;
  readonly path: string;
  readonly faults: Faults;
  readonly onChange: (draft: Draft) => void;
}): ReactNode {
  return (
    <div className="grid gap-5">
      {members.map(({ name, required, shape }) => (
        <SchemaField
          key={name}
          shape={shape}
          draft={draft[name]}
          label={name}
          required={required}
          path={path === '' ? name : `${path}.${name}`}
          faults={faults}
          onChange={(next) => onChange({ ...draft, [name]: next })}
        />
      ))}
    </div>
  );
}

/** The form field of a shape. All its texts are from the provider and are shown as plain text. */
function SchemaField({ shape, draft, label: name, required, path, faults, onChange }: Props): ReactNode {
  const label = (shape.title !== '' ? shape.title : name) + (required ? '' : ' (optional)');
  const error = faults.get(path) ?? null;
  const hint = shape.description === '' ? {} : { hint: shape.description };
  switch (shape.kind) {
    case 'text': {
      const props = {
        label,
        ...hint,
        error,
        value: draft as string,
        onChange: (event: { readonly target: { readonly value: string } }) => onChange(event.target.value),
      };
      return shape.long ? (
        <TextArea {...props} />
      ) : (
        <Field {...props} type={shape.format === 'date' ? 'date' : 'text'} autoComplete="off" spellCheck={false} />
      );
    }
    case 'number':
      return (
        <Field
          label={label}
          {...hint}
          error={error}
          inputMode={shape.whole ? 'numeric' : 'decimal'}
          placeholder={rangeOf(shape)}
          autoComplete="off"
          value={draft as string}
          onChange={(event) => onChange(event.target.value)}
        />
      );
    case 'flag':
      return required || shape.initial !== undefined ? (
        <Checkbox
          label={label}
          {...hint}
          checked={draft === true}
          onChange={(event) => onChange(event.target.checked)}
        />
      ) : (
        <Pick
          label={label}
          {...hint}
          error={error}
          texts={['Yes', 'No']}
          at={draft === undefined ? -1 : draft === true ? 0 : 1}
          onPick={(at) => onChange(at < 0 ? undefined : at === 0)}
        />
      );
    case 'choice':
      return (
        <Pick
          label={label}
          {...hint}
          error={error}
          texts={shape.options.map((option) => (typeof option === 'string' ? option : JSON.stringify(option)))}
          at={(draft as number | undefined) ?? -1}
          onPick={(at) => onChange(at < 0 ? undefined : at)}
        />
      );
    case 'fixed':
      return required ? null : (
        <Checkbox
          label={`${label}: ${JSON.stringify(shape.value)}`}
          {...hint}
          checked={draft === true}
          onChange={(event) => onChange(event.target.checked)}
        />
      );
    case 'json':
      return (
        <TextArea
          label={`${label}, as JSON`}
          {...hint}
          error={error}
          rows={3}
          spellCheck={false}
          value={draft as string}
          onChange={(event) => onChange(event.target.value)}
        />
      );
    default:
      return (
        <fieldset className="min-w-0 rounded-lg border border-line px-4 pb-4 pt-1">
          <legend className="px-1 text-sm font-medium">{label}</legend>
          {shape.description !== '' && <p className="mb-3 text-sm text-soft">{shape.description}</p>}
          <Inside
            shape={shape}
            draft={draft}
            label={name}
            required={required}
            path={path}
            faults={faults}
            onChange={onChange}
          />
          {error !== null && <p className="mt-2 text-sm text-bad">{error}</p>}
        </fieldset>
      );
  }
}

function Inside({
  shape,
  draft,
  label,
  required,
  path,
  faults,
  onChange,
}: Props<Extract<Shape, { kind: 'group' | 'list' | 'one-of' }>>): ReactNode {
  switch (shape.kind) {
    case 'group':
      return (
        <Members
          members={shape.members}
          draft={draft as Readonly<Record<string, Draft>>}
          path={path}
          faults={faults}
          onChange={onChange}
        />
      );
    case 'list': {
      const items = draft as readonly Draft[];
      return (
        <div className="grid gap-3">
          {items.map((item, index) => (
            <div key={index} className="flex items-start gap-2">
              <div className="min-w-0 grow">
                <SchemaField
                  shape={shape.item}
                  draft={item}
                  label={`${label} ${index + 1}`}
                  required
                  path={`${path}[${index}]`}
                  faults={faults}
                  onChange={(next) => onChange(items.with(index, next))}
                />
              </div>
              <button
                type="button"
                aria-label={`Take ${label} ${index + 1} away`}
                onClick={() => onChange(items.filter((_, each) => each !== index))}
                className="mt-6 grid size-10 shrink-0 place-items-center rounded-md text-soft hover:bg-sunk hover:text-ink"
              >
                <X size={16} aria-hidden />
              </button>
            </div>
          ))}
          {items.length < Math.min(shape.max, 100) && (
            <div>
              <Button size="small" onClick={() => onChange([...items, draftOf(shape.item)])}>
                <Plus size={15} aria-hidden /> Add
              </Button>
            </div>
          )}
        </div>
      );
    }
    case 'one-of': {
      const { at, drafts } = draft as OneOfDraft;
      const option = shape.options[at];
      return (
        <div className="grid gap-4">
          <Pick
            label={`Kind of ${label}`}
            error={null}
            texts={shape.options.map((each, index) => nameOf(each, index))}
            at={at}
            none={!required}
            onPick={(next) => onChange({ at: next, drafts } satisfies OneOfDraft)}
          />
          {option !== undefined && (
            <SchemaField
              shape={{ ...option, description: '' }}
              draft={drafts[at]}
              label={label}
              required={required}
              path={path}
              faults={faults}
              onChange={(next) => onChange({ at, drafts: drafts.with(at, next) } satisfies OneOfDraft)}
            />
          )}
        </div>
      );
    }
  }
}

const KIND_WORDS: Readonly<Record<Shape['kind'], string>> = {
  text: 'Text',
  number: 'Number',
  flag: 'Yes or no',
  choice: 'Choice',
  fixed: 'Fixed',
  list: 'List',
  group: 'Object',
  'one-of': 'One of',
  json: 'JSON',
};

const nameOf = (shape: Shape, index: number): string =>
  shape.title !== '' ? shape.title : `${index + 1}: ${KIND_WORDS[shape.kind]}`;

function rangeOf({ min, max }: { readonly min: number; readonly max: number }): string {
  if (Number.isFinite(min) && Number.isFinite(max)) return `${min} to ${max}`;
  return Number.isFinite(min) ? `at least ${min}` : Number.isFinite(max) ? `at most ${max}` : '';
}

function Pick({
  texts,
  at,
  none = true,
  onPick,
  ...frame
}: {
  readonly label: string;
  readonly hint?: string;
  readonly error: string | null;
  readonly texts: readonly string[];
  readonly at: number;
  readonly none?: boolean;
  readonly onPick: (at: number) => void;
}): ReactNode {
  const options = texts.map((text, index) => ({ value: String(index), text: text.slice(0, 200) }));
  return (
    <Select
      {...frame}
      options={none || at < 0 ? [{ value: '-1', text: 'Choose' }, ...options] : options}
      value={String(at)}
      onChange={(event) => onPick(Number(event.target.value))}
    />
  );
}
