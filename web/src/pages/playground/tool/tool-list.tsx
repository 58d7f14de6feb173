import type { ReactNode } from 'react';
import { Choice } from '../../../ui/choice.tsx';
import { Select } from '../../../ui/field.tsx';
import type { ToolFacts } from '../catalogue.ts';

const BUTTONS_MAX = 4;

/** A list to choose a tool of a service. */
export function ToolList({
  tools,
  chosen,
  onChoose,
}: {
  readonly tools: readonly ToolFacts[];
  readonly chosen: ToolFacts;
  readonly onChoose: (name: string) => void;
}): ReactNode {
  return tools.length <= BUTTONS_MAX ? (
    <Choice
      label="Tool"
      options={tools.map(({ name }) => ({ value: name, text: name }))}
      chosen={chosen.name}
      onChoose={onChoose}
    />
  ) : (
    <Select
      label="Tool"
      labelHidden
      options={tools.map(({ name, price }) => ({ value: name, text: `${name} – ${price}` }))}
      value={chosen.name}
      onChange={(event) => onChoose(event.target.value)}
    />
  );
}
