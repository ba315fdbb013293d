# zsh_offers.zsh SCRIPT LINE...: LINE, a tab and a candidate, for each that zsh offers for the last word of a LINE. zsh
# completes at a terminal alone, so there is one of its own, where the lines and a tab are typed.
zmodload zsh/zpty
# Until WORD is printed.
wait_for() {
  local text= part
  repeat 1000; do
    zpty -r -t shell part && text+=$part || sleep 0.01
    [[ $text == *$1* ]] && return
  done
  print -u2 "zsh has not said $1: $text"
  exit 1
}
zpty shell zsh -f -i
zpty -w shell 'PS1= PS2=; unsetopt beep prompt_cr; autoload -Uz compinit; compinit -u -D; source '${(q)1}
# All candidates pass compadd; with -O, -A or -D it only sorts them out.
zpty -w shell 'compadd() {
  [[ "$*" == *-[OAD]\ * ]] || { local -a shown; builtin compadd -O shown "$@"; offers+=($shown) }
  builtin compadd "$@"
}
put() { print -rl -- $1$'\''\t'\''${(u)^offers} >>'${(q)1}'.offers; offers=(); print of"fered" }; print rea"dy"'
wait_for ready
for line in "${@[2,-1]}"; do
  zpty -w -n shell $line$'\t\x15'  # a tab, and the line is taken back
  zpty -w shell "put ${(qq)line}"
  wait_for offered
done
cat $1.offers
