import { Monitor, Moon, Sun } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTheme } from './theme.ts';

const CHOICES = [
  ['light', 'Light theme', Sun],
  ['system', 'Theme of the system', Monitor],
  ['dark', 'Dark theme', Moon],
] as const;

export function ThemeSwitch(): ReactNode {
  const [theme, choose] = useTheme();
  return (
    <div role="group" aria-label="Theme" className="flex rounded-md border border-line p-0.5">
      {CHOICES.map(([name, label, Icon]) => (
        <button
          key={name}
          type="button"
          aria-label={label}
          title={label}
          aria-pressed={theme === name}
          onClick={() => choose(name)}
          className="grid size-7 place-items-center rounded text-soft hover:text-ink aria-pressed:bg-sunk aria-pressed:text-ink"
        >
          <Icon size={15} aria-hidden />
        </button>
      ))}
    </div>
  );
}
