import {
  cloneElement,
  useId,
  type InputHTMLAttributes,
  type ReactElement,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
} from 'react';

interface Frame {
  readonly label: string;
  /** One line below the label, such as the allowed values and the unit. */
  readonly hint?: ReactNode;
  /** The error of the value. */
  readonly error?: string | null;
  /** Shows the label only to screen readers. */
  readonly labelHidden?: boolean;
  readonly className?: string;
}

const CONTROL =
  'w-full rounded-md border border-edge bg-card px-3 text-base text-ink placeholder:text-soft aria-[invalid=true]:border-bad disabled:opacity-60';

type Control = ReactElement<{
  readonly id?: string;
  readonly 'aria-describedby'?: string;
  readonly 'aria-invalid'?: true;
}>;

/** The label, the hint and the error around a control, connected to it by ids. */
function Labelled({
  label,
  hint,
  error = null,
  labelHidden = false,
  className = '',
  children,
}: Frame & { readonly children: Control }): ReactNode {
  const id = useId();
  const described = [...(hint === undefined ? [] : [`${id}-hint`]), ...(error === null ? [] : [`${id}-error`])];
  return (
    <div className={className}>
      <label htmlFor={id} className={labelHidden ? 'sr-only' : 'mb-1 block text-sm font-medium'}>
        {label}
      </label>
      {hint !== undefined && (
        <p id={`${id}-hint`} className="mb-1.5 text-sm text-soft">
          {hint}
        </p>
      )}
      {cloneElement(children, {
        id,
        ...(described.length > 0 ? { 'aria-describedby': described.join(' ') } : {}),
        ...(error === null ? {} : { 'aria-invalid': true }),
      })}
      {error !== null && (
        <p id={`${id}-error`} className="mt-1.5 text-sm text-bad">
          {error}
        </p>
      )}
    </div>
  );
}

const split = <T extends Frame>({ label, hint, error, labelHidden, className, ...rest }: T) => ({
  frame: {
    label,
    ...(hint === undefined ? {} : { hint }),
    ...(error === undefined ? {} : { error }),
    ...(labelHidden === undefined ? {} : { labelHidden }),
    ...(className === undefined ? {} : { className }),
  },
  rest,
});

/** A single-line text field with its label. */
export function Field(props: Frame & Omit<InputHTMLAttributes<HTMLInputElement>, 'className'>): ReactNode {
  const { frame, rest } = split(props);
  return (
    <Labelled {...frame}>
      <input {...rest} className={`${CONTROL} h-10`} />
    </Labelled>
  );
}

/** A multi-line text field with its label. */
export function TextArea(props: Frame & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'className'>): ReactNode {
  const { frame, rest } = split(props);
  return (
    <Labelled {...frame}>
      <textarea rows={4} {...rest} className={`${CONTROL} py-2`} />
    </Labelled>
  );
}

export interface SelectOption {
  readonly value: string;
  readonly text: string;
}

/** A select with its label. */
export function Select(
  props: Frame & {
    readonly options: readonly SelectOption[];
    /** As wide as its options and less high, for rows of filters. */
    readonly compact?: boolean;
  } & Omit<SelectHTMLAttributes<HTMLSelectElement>, 'className' | 'children'>,
): ReactNode {
  const { options, compact = false, ...others } = props;
  const { frame, rest } = split(others);
  return (
    <Labelled {...frame}>
      <select
        {...rest}
        className={
          compact
            ? 'h-9 w-full rounded-md border border-line bg-card px-2 text-sm text-ink hover:border-edge'
            : `${CONTROL} h-10 pr-8`
        }
      >
        {options.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

/** A checkbox with its label behind it. */
export function Checkbox({
  label,
  hint,
  ...rest
}: Pick<Frame, 'label' | 'hint'> & Omit<InputHTMLAttributes<HTMLInputElement>, 'className' | 'type'>): ReactNode {
  const id = useId();
  return (
    <div className="flex items-start gap-2.5">
      <input id={id} type="checkbox" {...rest} className="mt-0.5 size-4 accent-accent" />
      <div>
        <label htmlFor={id} className="text-sm">
          {label}
        </label>
        {hint !== undefined && <p className="text-sm text-soft">{hint}</p>}
      </div>
    </div>
  );
}
