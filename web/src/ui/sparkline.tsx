import type { ReactNode } from 'react';

/** A row of bars without axes. `label` describes it in words. */
export function Sparkline({
  values,
  label,
  width = 96,
  height = 24,
}: {
  readonly values: readonly number[];
  readonly label: string;
  readonly width?: number;
  readonly height?: number;
}): ReactNode {
  const top = Math.max(...values, 1);
  const step = width / Math.max(values.length, 1);
  return (
    <svg role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`} width={width} height={height}>
      {values.map((value, index) => {
        const bar = value === 0 ? 1 : Math.max(2, (value / top) * height);
        return (
          <rect
            key={index}
            x={index * step}
            y={height - bar}
            width={Math.max(1, step - 1)}
            height={bar}
            rx={0.5}
            fill={value === 0 ? 'var(--line)' : 'var(--accent)'}
          />
        );
      })}
    </svg>
  );
}
