# zsh_candidates.zsh SCRIPT LINE: what zsh offers at the end of LINE, one a line, from a zsh at a terminal of its own.
zmodload zsh/zpty
zpty shell zsh -f -i
send() { zpty -w shell $1 }
# Until MARK is printed; what was printed before is in $text.
until_mark() {
  text=
  local part
  repeat 1000; do
    zpty -r -t shell part && text+=$part || sleep 0.01
    [[ $text == *$1* ]] && return
  done
  print -u2 "zsh said nothing of $1: $text"
  exit 1
}
send 'PS1= PS2= COLUMNS=400 LINES=1000; unsetopt zle; setopt no_beep'
send 'autoload -Uz compinit; compinit -u -D; source '${(q)1}
# compadd is where all candidates pass.
send 'compadd() { local -a shown; builtin compadd -O shown "$@"; builtin compadd "$@"; [[ "$*" == *-[OAD]* ]] || print -l -- "<"$^shown">" >>'${(q)1}.offered' }'
send 'setopt zle; print rea""dy'
until_mark ready
zpty -w -n shell $2$'\t'
zpty -w -n shell $'\x15'
send 'print do""ne'
until_mark done
zpty -d shell
sed -n 's/^<\(.*\)>$/\1/p' $1.offered
rm -f $1.offered
