import type { ReactNode } from 'react';
import { Field } from './field.tsx';

/** A search of one field, which is sent by Enter. */
export function SearchField({
  label,
  name,
  labelHidden = false,
  placeholder = 'then Enter',
  value = '',
  className = '',
  onFind,
}: {
  readonly label: string;
  readonly name: string;
  readonly labelHidden?: boolean;
  readonly placeholder?: string;
  readonly value?: string;
  readonly className?: string;
  readonly onFind: (text: string) => void;
}): ReactNode {
  return (
    <form
      role="search"
      aria-label={label}
      className={`min-w-0 ${className}`}
      onSubmit={(event) => {
        event.preventDefault();
        onFind(String(new FormData(event.currentTarget).get('text')).trim());
      }}
    >
      <Field
        key={value}
        label={name}
        labelHidden={labelHidden}
        name="text"
        type="search"
        spellCheck={false}
        autoComplete="off"
        placeholder={placeholder}
        defaultValue={value}
      />
    </form>
  );
}
