import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { buttonStyle, type Tone } from './button-style.ts';

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly tone?: Tone;
  readonly size?: 'normal' | 'small';
  /** Shows that work is in progress, and ignores clicks. */
  readonly busy?: boolean;
}

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
