import styles from "./signin.module.css";

/** A small canvas: a brief, an image made from it, and its variants. */
export function Illustration() {
  return (
    <div className={styles.scene} aria-hidden="true">
      <svg viewBox="0 0 720 620" preserveAspectRatio="xMidYMid meet">
        <defs>
          <linearGradient id="sky" x1="0" y1="0" x2="0" y2="1">
            <stop offset="0" stopColor="#ffd7a8" />
            <stop offset="0.55" stopColor="#f58f7c" />
            <stop offset="1" stopColor="#7a4a8f" />
          </linearGradient>
          <linearGradient id="sea" x1="0" y1="0" x2="0" y2="1">
            <stop offset="0" stopColor="#5a5ea8" />
            <stop offset="1" stopColor="#23306b" />
          </linearGradient>
          <symbol id="harbor" viewBox="0 0 240 160" preserveAspectRatio="xMidYMid slice">
            <rect width="240" height="160" fill="url(#sky)" />
            <circle cx="150" cy="84" r="24" fill="#fff1cf" />
            <path d="M0 96 44 66l30 18 34-30 40 42z" fill="#5d3f7d" opacity="0.8" />
            <rect y="96" width="240" height="64" fill="url(#sea)" />
            <path d="M132 104h40M124 114h58M138 124h32M130 136h44" stroke="#ffd7a8" strokeWidth="3" strokeLinecap="round" opacity="0.75" />
            <path d="M52 112h44l-9 14H62zM74 108V74l22 32z" fill="#1b2350" />
            <path d="M70 108V82L54 106z" fill="#fff1cf" opacity="0.9" />
          </symbol>
        </defs>
        <g className={styles.wires}>
          <path d="M236 168C300 168 276 240 330 240" />
          <path d="M186 322C186 372 240 316 330 300" />
          <path d="M570 232C640 232 596 420 560 438" />
          <path d="M450 354C450 400 330 400 318 440" />
        </g>
        <g className={styles.node}>
          <rect x="60" y="96" width="176" height="144" rx="12" />
          <path className={styles.words} d="M82 130h86M82 154h132M82 174h118M82 194h128M82 214h70" />
        </g>
        <g className={styles.sticky}>
          <rect x="116" y="268" width="124" height="108" rx="6" transform="rotate(-4 178 322)" />
          <path d="M136 302l76-5M138 320l84-6M140 338l52-4" />
        </g>
        <g className={styles.node}>
          <rect x="330" y="158" width="240" height="196" rx="12" />
          <use href="#harbor" x="340" y="168" width="220" height="150" />
          <path className={styles.words} d="M346 338h96" />
        </g>
        <g className={styles.node}>
          <rect x="196" y="440" width="150" height="120" rx="12" />
          <use href="#harbor" x="204" y="448" width="134" height="104" />
        </g>
        <g className={styles.node}>
          <rect x="440" y="438" width="196" height="104" rx="12" />
          <use href="#harbor" x="448" y="446" width="180" height="88" />
        </g>
        <g className={styles.hand}>
          <path d="M586 366l5 26 7-9 11-1z" fill="#1f3fd6" />
          <rect x="602" y="390" width="62" height="26" rx="13" fill="#1f3fd6" />
          <text x="633" y="407.5">agent</text>
        </g>
        <g className={styles.other}>
          <path d="M286 110l5 26 7-9 11-1z" fill="#157347" />
          <rect x="302" y="134" width="46" height="26" rx="13" fill="#157347" />
          <text x="325" y="151.5">you</text>
        </g>
      </svg>
    </div>
  );
}
