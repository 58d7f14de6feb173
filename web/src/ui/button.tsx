import type { ButtonHTMLAttributes, ReactNode } from 'react';

type Tone = 'plain' | 'primary' | 'danger' | 'quiet';

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly tone?: Tone;
  readonly size?: 'normal' | 'small';
  /** Shows that the work is going on, and takes no further click. */
  readonly busy?: boolean;
}

const TONES: Readonly<Record<Tone, string>> = {
  plain: 'border border-line bg-card text-ink hover:border-edge',
  primary: 'border border-transparent bg-accent text-on-accent hover:bg-accent-deep',
  danger: 'border border-bad bg-card text-bad hover:bg-bad-wash',
  quiet: 'border border-transparent text-soft hover:bg-sunk hover:text-ink',
};

/** The look of a button, for links that look like one. */
export const buttonStyle = (tone: Tone = 'plain', size: 'normal' | 'small' = 'normal'): string =>
  `inline-flex items-center justify-center gap-2 rounded-md font-medium whitespace-nowrap transition-colors disabled:opacity-55 ${
    size === 'small' ? 'h-8 px-2.5 text-sm' : 'h-10 px-4 text-sm'
  } ${TONES[tone]}`;

export function Button({ tone, size, busy = false, className = '', children, disabled, ...rest }: Props): ReactNode {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled === true || busy}
      aria-busy={busy || undefined}
      className={`${buttonStyle(tone, size)} ${className}`}
    >
      {busy && (
        <span aria-hidden className="size-3.5 animate-spin rounded-full border-2 border-current border-r-transparent" />
      )}
      {children}
    </button>
  );
}
